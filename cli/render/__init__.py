"""How results, summaries and warnings are printed."""
