"""Any language: words as they are."""

from shinglefold.plugins.any.anything import AnyLanguage

__all__ = ["AnyLanguage"]
