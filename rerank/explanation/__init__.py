"""Why hits were folded: what they share, and the passages in which their texts agree."""
