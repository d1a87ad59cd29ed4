"""Russian: lemmas by pymorphy3, or Snowball stems."""

from shinglefold.plugins.ru.russian import Russian

__all__ = ["Russian"]
