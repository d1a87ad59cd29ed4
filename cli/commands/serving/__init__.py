"""Commands that serve requests."""
