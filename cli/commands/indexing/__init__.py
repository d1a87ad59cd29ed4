"""Commands that write to an index, set it up, or examine it."""
