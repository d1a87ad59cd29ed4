"""The version of shinglefold."""

__version__ = "0.1.0"
