"""An index of three shards for gates; all that they leave is deleted afterwards."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import ensure_index


@contextmanager
def gated_index(
    engine: Engine, pipeline: Pipeline, properties: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[str]:
    """Yield the name of an index with group numbers; ``settings`` are those of the index."""
    name = f"gated-{uuid.uuid4().hex[:8]}"
    shards = {"index": {"number_of_shards": 3, "number_of_replicas": 0, **settings}}
    recipe = replace(pipeline.recipe(), groups=True)
    ensure_index(engine, name, recipe, properties=properties or {}, settings=shards)
    try:
        yield name
    finally:
        for one in (name, intents_name(name)):
            if engine.index_exists(one):
                engine.delete_index(one)
