"""Indices on a real server that are set up for fingerprints and full of documents without any."""

from collections.abc import Callable

import pytest
from support.maintenance import FIELDS, pages, store

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Engine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.model.scheme import Scheme

#: Documents are spread over shards, so an order that is total in each alone shows.
SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


@pytest.fixture(scope="session")
def pipeline(scheme: Scheme, canonicalizer: Canonicalizer) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme, canonicalizer)


@pytest.fixture
def unsigned(engine: Engine, new_index, scheme: Scheme) -> Callable[[int], str]:
    """Make an index of so many documents without fingerprints."""

    def make(count: int) -> str:
        made = mappings(scheme)
        made["properties"] |= FIELDS
        index = new_index(made, SHARDS)
        store(engine, index, pages(count))
        return index

    return make
