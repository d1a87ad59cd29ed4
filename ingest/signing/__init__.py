"""From file to file: documents get their fingerprints without any engine, in order and resumable."""
