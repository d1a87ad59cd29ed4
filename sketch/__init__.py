"""Shingles, MinHash signatures and supershingles of documents; pairs and groups of near-duplicates."""
