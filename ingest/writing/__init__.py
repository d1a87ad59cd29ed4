"""Writing: blocks through worker processes into an engine, every record accounted for."""
