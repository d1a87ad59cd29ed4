"""Hits to groups: which match, by signature or text, and which of them belong together."""
