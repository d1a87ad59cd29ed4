"""Sign files: documents in, the same documents with fingerprints out."""
