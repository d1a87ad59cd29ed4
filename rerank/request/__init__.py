"""What a search may say about folding: read, checked and cut into the bodies that are sent."""
