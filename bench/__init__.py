"""Benchmarks: every stage timed and every claim measured, the answer asserted before the time is taken."""
