"""Mappings, field types, and request options of the embedded engine."""
