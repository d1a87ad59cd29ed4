"""Gates before indices of a server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
from support.gate.crashes import make_pipeline
from support.gate.indices import gated_index

from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """The pipeline of one language, instead of that of the default."""
    return make_pipeline()


@pytest.fixture
def engine(server):
    """An engine of a test's own, which it may patch."""
    with open_engine(server.url) as opened:
        yield opened


@pytest.fixture
def gated(engine, pipeline) -> Callable[..., AbstractContextManager[str]]:
    """Make an index with group numbers: ``gated(properties, **settings)``."""
    return partial(gated_index, engine, pipeline)


@pytest.fixture
def index(gated) -> Iterator[str]:
    with gated({}) as name:
        yield name
