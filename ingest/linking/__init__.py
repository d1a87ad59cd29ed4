"""Pairs and groups of collections that memory does not hold: fingerprints in files, stage by stage."""
