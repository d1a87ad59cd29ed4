"""The commands, by what they work on."""
