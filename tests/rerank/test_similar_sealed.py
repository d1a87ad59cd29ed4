"""Copies in a sealed index: what was forged is no copy and has none."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.forgeries import GENUINE, SEAL, forgeries
from support.hits import SCHEME, find_similar, split

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings


@pytest.fixture
def engine(tmp_path) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path, split) as engine:
        engine.create_index("pages", recipe_mappings(replace(default_recipe(SCHEME), sealed=SEAL.id)), {})
        written = [SEAL.sealed(GENUINE), *forgeries(), SEAL.sealed(GENUINE)]
        engine.bulk(
            {"_index": "pages", "_id": str(rank), "_source": {"_dedup": one.to_field()}}
            for rank, one in enumerate(written)
        )
        engine.refresh("pages")
        yield engine


def test_only_genuine_copies_are_found_and_forged_ones_are_counted(engine):
    last = str(len(forgeries()) + 1)
    page = find_similar(engine, "pages", "0", seal=SEAL)
    assert [match.id for match in page.matches] == [last]
    assert page.unreadable > 0
    # A text that is not stored gets the seal of whoever has the key.
    assert {match.id for match in find_similar(engine, "pages", GENUINE, seal=SEAL).matches} == {"0", last}


def test_a_forged_document_has_no_copies(engine):
    for rank in range(1, len(forgeries()) + 1):
        with pytest.raises(InputError, match=r"no supershingles|seal of the index"):
            find_similar(engine, "pages", str(rank), seal=SEAL)


def test_without_the_key_nothing_is_compared(engine):
    with pytest.raises(ConfigError, match="SHINGLEFOLD_SEAL_KEY"):
        find_similar(engine, "pages", "0")
