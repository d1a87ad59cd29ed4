"""Pipelines: processors in order, from the engines' own JSON, with conditions and handlers."""
