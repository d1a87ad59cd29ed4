"""Other methods for similar texts: simhash, piecewise hashes, Rabin-Karp fingerprints, Bloom filters."""
