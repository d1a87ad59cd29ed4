"""An embedded index with groups, and texts that are near-copies of each other."""

import random
from dataclasses import replace

import pytest
from support.gate.crashes import make_pipeline
from support.numbered import mappings, store
from support.random_pages import COUNT

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest.index_mapping import ensure_index


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


@pytest.fixture
def engine(tmp_path, pipeline):
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as opened:
        properties = {"host": {"type": "keyword"}}
        ensure_index(opened, "texts", replace(pipeline.recipe(), groups=True), properties=properties)
        yield opened


@pytest.fixture
def index(engine) -> str:
    engine.create_index("pages", mappings(), {})
    store(engine, "pages", range(COUNT))
    return "pages"


@pytest.fixture(scope="module")
def text():
    """Return the text of a class, or with a number a near-copy of it."""

    def make(kind, edits=0, words=120):
        chance = random.Random(f"{kind}")
        made = [f"w{chance.randrange(5000)}" for _ in range(words)]
        for edit in range(edits):
            made[edit * 7] = f"edit{edit}"
        return " ".join(made)

    return make
