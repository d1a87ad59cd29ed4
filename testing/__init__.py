"""Conformance kits for language plugins and engines, built-in ones and your own."""
