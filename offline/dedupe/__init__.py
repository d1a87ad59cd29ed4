"""Find the pairs and groups of near-duplicates in files."""
