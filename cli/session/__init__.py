"""What a command finds out about its index or its files before it runs."""
