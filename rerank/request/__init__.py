"""The folding options of a request: parsed, checked, and turned into the bodies that are sent."""
