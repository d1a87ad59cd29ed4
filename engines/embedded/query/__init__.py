"""Queries of the DSL as queries of tantivy."""
