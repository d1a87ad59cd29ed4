"""Indices on a real server that are set up for fingerprints and full of documents without any."""

from collections.abc import Callable

import pytest
from support.maintenance import mapped, pages, store

from shinglefold.contracts.engine import Engine
from shinglefold.model.scheme import Scheme

#: Documents are spread over shards, so an order that is total in each alone shows.
SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


@pytest.fixture
def unsigned(engine: Engine, new_index, scheme: Scheme) -> Callable[[int], str]:
    """Make an index of so many documents without fingerprints."""

    def make(count: int) -> str:
        index = new_index(mapped(scheme), SHARDS)
        store(engine, index, pages(count))
        return index

    return make
