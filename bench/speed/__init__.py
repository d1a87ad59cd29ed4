"""How fast: from file to file, the kernel inside it, and grouping at scale."""
