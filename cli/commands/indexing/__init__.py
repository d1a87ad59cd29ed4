"""Commands that write to an index or set it up."""
