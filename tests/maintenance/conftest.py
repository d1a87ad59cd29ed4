"""Fixtures: the pipeline for pages, and an embedded engine with pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, store

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.index_mapping import default_recipe, ensure_index
from shinglefold.model.scheme import Scheme


@pytest.fixture
def pipeline(scheme: Scheme) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme)


@pytest.fixture
def engine(tmp_path: Path, canonicalizer: Canonicalizer) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path / "engine", canonicalizer) as opened:
        yield opened


@pytest.fixture
def unsigned(engine: EmbeddedEngine, scheme: Scheme) -> str:
    """An index set up for fingerprints whose 250 documents have none."""
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS)
    store(engine, "pages", pages(250))
    return "pages"
