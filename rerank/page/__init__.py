"""The answer: representatives for hits, their groups attached, totals and our counters."""
