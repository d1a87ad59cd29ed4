"""Words: their language, homoglyphs, and the lexicon of canonical forms."""
