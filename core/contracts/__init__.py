"""The contracts between packages, as protocols."""
