"""The built-in languages; the registry finds them by their entry points, like all others."""
