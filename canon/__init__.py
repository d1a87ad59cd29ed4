"""Text to canonical tokens: HTML, normalization, segmentation, language detection, the lexicon."""

from shinglefold.canon.canonicalizer import Canonicalizer, check_canonicalizer
from shinglefold.canon.html import main_markup, strip_html
from shinglefold.canon.language_detection import token_hash
from shinglefold.canon.lexicon import Lexicon

__all__ = ["Canonicalizer", "Lexicon", "check_canonicalizer", "main_markup", "strip_html", "token_hash"]
