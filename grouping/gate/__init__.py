"""The gate: a new document is decided against everything stored, documents of the same moment included."""
