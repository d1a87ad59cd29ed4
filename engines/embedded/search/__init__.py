"""Searches of the embedded engine: sorting, collapse, aggregations, highlights."""
