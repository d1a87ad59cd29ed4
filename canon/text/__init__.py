"""Text as characters: normalization, HTML, chunks and segments."""
