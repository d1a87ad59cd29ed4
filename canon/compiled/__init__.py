"""The compiled path of canonicalization, where numba is installed."""
