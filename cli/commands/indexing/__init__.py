"""Commands that write to an index."""
