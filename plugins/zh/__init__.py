"""Chinese: characters, Traditional folded to Simplified."""

from shinglefold.plugins.zh.chinese import Chinese

__all__ = ["Chinese"]
