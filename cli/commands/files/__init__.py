"""Commands on files, without an index."""
