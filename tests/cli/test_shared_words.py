"""One canonicalizer makes the tokens of fingerprints and the words of searches, where these are the same."""

from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import make_scheme


def test_it_is_shared_where_its_words_are_those_of_searches():
    known = Canonicalizer.of(make_scheme())
    assert search_canonicalizer(make_scheme()) is known


def test_words_that_fingerprints_drop_stay_in_searches():
    scheme = make_scheme(options=CanonOptions(drop_function_words=True))
    known = Canonicalizer.of(scheme)
    words = search_canonicalizer(scheme)
    assert words is not known
    assert [token.text for token in words.tokens("and the heron")] == ["and", "the", "heron"]
