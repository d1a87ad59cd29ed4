"""Pipelines of processors, with conditions and failure handlers."""
