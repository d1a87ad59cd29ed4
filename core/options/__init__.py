"""Validation of options, settings files, and remedies in messages."""
