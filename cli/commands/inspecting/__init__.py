"""Commands that show an index or the settings."""
