"""Conformance kits: what every language plugin and every engine must keep, for yours as for ours."""
