"""Files in, files out: signing and grouping without an engine."""
