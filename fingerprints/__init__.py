"""Fingerprints of shingles: the rolling hash of Rabin and Karp, checksums, and how wide they have to be."""
