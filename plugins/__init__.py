"""The built-in languages; the registry finds them by entry point, as it finds a stranger's."""
