"""The commands, one module each, by what they work on."""
