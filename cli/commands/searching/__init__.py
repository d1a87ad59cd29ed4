"""Commands that search an index, or serve it."""
