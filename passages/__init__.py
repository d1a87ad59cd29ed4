"""Matched passages: which documents contain a passage of a text, and where in both."""
