"""Relatives of the method: simhash, piecewise hashes, Rabin-Karp, Bloom filters."""
