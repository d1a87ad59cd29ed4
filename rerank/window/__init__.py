"""Reads windows of hits until a page is full; cursors; what answers lack."""
