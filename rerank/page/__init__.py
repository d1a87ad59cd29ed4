"""The response: representatives as hits, their members, totals and counters."""
