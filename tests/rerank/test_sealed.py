"""Searching a sealed index: what was forged or altered is counted and never compared."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.hits import (
    GENUINE,
    OTHER,
    SCHEME,
    SEAL,
    Spec,
    fill,
    find_similar,
    fingerprint_of,
    forgeries,
    split,
)

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse

LIST = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 50}


def hit(rank: int, made: Fingerprint, *, source: bool = False) -> dict[str, object]:
    field = made.to_field()
    if source:
        return {"_id": str(rank), "_source": {"_dedup": field}}
    wanted = {f"_dedup.{part}": [field[part]] for part in ("digest", "signature") if part in field}
    return {"_id": str(rank), "fields": wanted}


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_forged_fingerprints_never_fold(source, linkage):
    made = [SEAL.sealed(GENUINE), *forgeries(), SEAL.sealed(GENUINE)]
    hits = [hit(rank, one, source=source) for rank, one in enumerate(made)]
    found = collapse(hits, SCHEME, FoldOptions(linkage=linkage), seal=SEAL)
    members = sorted(group.members for group in found.groups)
    assert members == [(0, len(made) - 1), *((rank,) for rank in range(1, len(made) - 1))]
    assert found.counts.unreadable == len(forgeries())


def test_a_window_of_sealed_fingerprints_folds_as_one_without_seals():
    specs = [
        Spec(original=n % 7, changed=n % 60, seed=n, digest=f"d{n % 20}", signed=n % 9 > 0) for n in range(80)
    ]
    plain = [fingerprint_of(spec) for spec in specs]
    bare = collapse([hit(rank, one) for rank, one in enumerate(plain)], SCHEME)
    sealed = collapse([hit(rank, SEAL.sealed(one)) for rank, one in enumerate(plain)], SCHEME, seal=SEAL)
    assert sealed.groups == bare.groups
    assert sealed.counts == bare.counts


def test_without_the_key_nobody_can_check_a_seal_and_the_fingerprint_counts_as_unreadable():
    found = collapse([hit(rank, SEAL.sealed(GENUINE)) for rank in range(3)], SCHEME)
    assert (found.folded, found.counts.unreadable) == (0, 3)


def test_a_hit_without_any_fingerprint_is_unsigned_and_not_unreadable():
    found = collapse(
        [hit(0, SEAL.sealed(GENUINE)), {"_id": "1", "fields": {"host": ["a"]}}], SCHEME, seal=SEAL
    )
    assert (found.counts.unsigned, found.counts.unreadable) == (1, 0)


@pytest.fixture
def engine(tmp_path) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path, split) as opened:
        written = [SEAL.sealed(GENUINE), *forgeries(), SEAL.sealed(GENUINE)]
        sources = {f"{rank}": {"rank": rank, "_dedup": one.to_field()} for rank, one in enumerate(written)}
        recipe = replace(default_recipe(SCHEME), sealed=SEAL.id)
        fill(opened, "sealed", sources, recipe_mappings(recipe), rank="integer")
        fill(opened, "plain", {}, rank="integer")
        yield opened


@pytest.mark.parametrize("options", [{}, {"cursor": True}, {"explain": True}, {"linkage": "connected"}])
def test_an_index_with_forgeries_shows_each_of_them(engine, options):
    answer = FoldedSearch(engine, SCHEME, seal=SEAL).search("sealed", {**LIST, "ext": {"dedup": options}})
    shown = [hit["_id"] for hit in answer["hits"]["hits"]]
    assert shown == [str(rank) for rank in range(len(forgeries()) + 1)]
    assert answer["dedup"]["unreadable"] == len(forgeries())


@pytest.mark.parametrize(
    ("index", "seal", "said"),
    [
        ("sealed", None, "none is given"),
        ("sealed", OTHER, "the one given is"),
        ("plain", SEAL, "is not sealed"),
    ],
)
def test_an_index_sealed_otherwise_is_refused(engine, index, seal, said):
    with pytest.raises(ConfigError, match=said):
        FoldedSearch(engine, SCHEME, seal=seal, on_trouble="raise").search(index, LIST)
    page = FoldedSearch(engine, SCHEME, seal=seal).search(index, LIST)
    folded = FoldedSearch(engine, SCHEME, seal=SEAL if index == "sealed" else None).search(index, LIST)
    assert folded["dedup"]["mode"] == "window"
    assert page["dedup"].keys() >= folded["dedup"].keys()
    assert page["dedup"]["mode"] == "unfolded"
    assert said in page["dedup"]["mode_reason"]


def test_only_genuine_copies_are_found_and_forged_ones_are_counted(engine):
    last = str(len(forgeries()) + 1)
    page = find_similar(engine, "sealed", "0", seal=SEAL)
    assert [match.id for match in page.matches] == [last]
    assert page.unreadable > 0
    # A text that is not stored is sealed with the key of the search.
    assert {match.id for match in find_similar(engine, "sealed", GENUINE, seal=SEAL).matches} == {"0", last}


def test_a_forged_document_has_no_copies(engine):
    for rank in range(1, len(forgeries()) + 1):
        with pytest.raises(InputError, match=r"no supershingles|seal of the index"):
            find_similar(engine, "sealed", str(rank), seal=SEAL)


def test_without_the_key_nothing_is_compared(engine):
    with pytest.raises(ConfigError, match="SHINGLEFOLD_SEAL_KEY"):
        find_similar(engine, "sealed", "0")
