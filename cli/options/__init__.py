"""Options that several commands share, and the reading of sources."""
