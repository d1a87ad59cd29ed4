"""What all commands share: their class, output, progress, exit codes, commands in messages."""
