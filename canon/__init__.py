"""canon: text to canonical tokens; markup, folds, segmentation, language choice, lexicon."""

from shinglefold.canon.canonicalizer import Canonicalizer, check_canonicalizer
from shinglefold.canon.text.html import strip_html
from shinglefold.canon.words.lexicon import Lexicon
from shinglefold.canon.words.word_form import token_hash

__all__ = ["Canonicalizer", "Lexicon", "check_canonicalizer", "strip_html", "token_hash"]
