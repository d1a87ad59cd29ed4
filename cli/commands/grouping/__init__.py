"""Commands on the groups of an index."""
