"""From candidates to groups: buckets, all pairs, union-find."""
