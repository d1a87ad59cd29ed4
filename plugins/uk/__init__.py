"""Ukrainian: lemmas by pymorphy3."""

from shinglefold.plugins.uk.ukrainian import Ukrainian

__all__ = ["Ukrainian"]
