"""English: Snowball (Porter2) stems."""

from shinglefold.plugins.en.english import English

__all__ = ["English"]
