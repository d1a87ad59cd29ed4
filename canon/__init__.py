"""Text to canonical tokens: HTML, normalization, segmentation, language detection, the lexicon."""

from shinglefold.canon.canonicalizer import Canonicalizer
from shinglefold.canon.html import strip_html

__all__ = ["Canonicalizer", "strip_html"]
