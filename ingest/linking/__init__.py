"""Pairs and groups of files without an index: fingerprints in columns, candidates slot by slot."""
