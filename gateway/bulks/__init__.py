"""Bulk requests: their actions, and how documents in them get fingerprints."""
