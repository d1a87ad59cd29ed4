"""Where several shards were read, an id may stand for several documents."""

import json

import pytest
from support.hits import SCHEME

from shinglefold.rerank import FoldedSearch


class Sharded:
    """A real engine whose answers say how many shards gave them; it keeps what it was asked."""

    def __init__(self, engine, shards):
        self.engine, self.shards, self.asked = engine, shards, []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def search(self, index, body, **more):
        self.asked.append(body)
        answer = self.engine.search(index, body, **more)
        return {**answer, "_shards": {"total": self.shards, "successful": self.shards}}


@pytest.mark.parametrize(("shards", "told_apart"), [(1, False), (2, True), (3, True)])
def test_hits_of_several_shards_are_asked_for_by_index_and_routing_too(library, shards, told_apart):
    engine = Sharded(library.engine, shards)
    FoldedSearch(engine, SCHEME).search("pages", library.body(0, size=5))
    read, fetched = map(json.dumps, engine.asked)
    assert "_routing" not in read
    assert '"0-0"' in fetched
    assert ("_routing" in fetched) == told_apart
