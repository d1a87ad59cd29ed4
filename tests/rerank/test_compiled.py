"""Compiled code makes the groups that numpy makes, on every input."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, hits_of, hits_of_rows, random_rows, specs
from support.servers.choose import examples

from shinglefold.model.scheme import Scheme
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.fold.clustering import folding_of

pytest.importorskip("numba")

from shinglefold.rerank.fold.compiled_groups import compiled_leader_groups


def both(hits, options=None, scheme=SCHEME):
    foldings = [folding_of(scheme, options or FoldOptions(), "_dedup", **way) for way in ({}, COMPILED)]
    for folding in foldings:
        folding.add(hits)
    return [folding.collapsed() for folding in foldings]


COMPILED = {"lead": compiled_leader_groups}


@given(
    specs,
    st.sampled_from([0.0, 1e-9, 0.3, 0.62, 0.9, 1.0]),
    st.sampled_from([0.0, 0.5, 0.8, 1.0, 1]),
    st.integers(0, 3),
    st.sampled_from([(), ("host",), ("host", "published:100s")]),
)
@settings(max_examples=examples(300), deadline=None)
def test_groups_are_those_of_numpy(made, least, ratio, shared, scope):
    given_ = {"min_length_ratio": ratio, "min_shared": shared, "scope": list(scope)}
    options = FoldOptions.parse(given_ | ({"min_resemblance": least} if least or shared else {}))
    plain, quick = both(hits_of(made), options)
    assert quick == plain


@pytest.mark.long(every=7)
@pytest.mark.parametrize(
    ("values", "bits", "least"),
    [(168, 4, 0.62), (84, 8, 0.62), (336, 2, 0.5), (100, 1, 0.8), (38, 2, 0.4), (20, 16, 0.5), (22, 32, 0.5)],
)
def test_signatures_of_every_layout_are_compared_to_the_value(values, bits, least):
    scheme = Scheme().with_options(values=values, bits=bits, groups=4, group_size=4, min_resemblance=least)
    chance = np.random.default_rng(values)
    folded = 0
    for _ in range(60):
        plain, quick = both(hits_of_rows(random_rows(chance, scheme, 40), scheme), scheme=scheme)
        assert quick == plain
        folded += quick.folded
    assert 60 < folded < 60 * 39


def test_later_blocks_and_hits_without_fingerprints_are_folded_alike():
    made = [Spec(original=number % 700, changed=20, seed=number, digest="") for number in range(1500)]
    hits = [{} if number % 97 == 0 else hit for number, hit in enumerate(hits_of(made))]
    plain, quick = both(hits)
    assert quick == plain
    assert len(quick.groups) > 700


def test_a_search_answers_alike_by_compiled_code(library):
    plain, quick = (FoldedSearch(library.engine, SCHEME) for _ in range(2))
    assert quick.compile()
    assert quick.is_compiled
    assert not plain.is_compiled
    for number in range(len(library.lists)):
        body = library.body(number, size=5)
        assert _told(quick.search("pages", body)) == _told(plain.search("pages", body))
        ways = [list(search.pages("pages", library.body(number, size=7))) for search in (plain, quick)]
        assert [page["hits"] for page in ways[0]] == [page["hits"] for page in ways[1]]


def _told(answer):
    return {name: value for name, value in answer.items() if name != "took"}


def test_without_numba_a_search_goes_on_in_numpy_and_says_so(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "shinglefold.rerank.fold.compiled_groups")
    search = FoldedSearch(library.engine, SCHEME)
    assert not search.compile()
    assert not search.is_compiled
    assert search.search("pages", library.body(0))["hits"]["hits"]
