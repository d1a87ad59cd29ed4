"""Mutants by a seed: what the tests of a package do not notice when its code is changed."""
