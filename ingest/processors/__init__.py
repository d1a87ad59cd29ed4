"""Processors: each takes documents and returns them changed; what a pipeline is made of."""
