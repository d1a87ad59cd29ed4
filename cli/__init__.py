"""The command line: one file a command, thin over the packages that do the work."""
