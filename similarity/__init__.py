"""Similarity hashes: short numbers that differ little where texts do."""
