"""Commands that search an index."""
