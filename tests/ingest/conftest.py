"""Fixtures: pipelines on one warm canonicalizer, and an engine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Fingerprinter, Pipeline
from shinglefold.model.scheme import Scheme


@pytest.fixture
def make_pipeline(scheme: Scheme) -> Callable[..., Pipeline]:
    def make(*processors: dict[str, Any], **rest: Any) -> Pipeline:
        return Pipeline.from_json({"processors": list(processors), **rest}, scheme)

    return make


@pytest.fixture
def run_one(make_pipeline: Callable[..., Pipeline]) -> Callable[..., Any]:
    """Take one document through processors; its outcome."""

    def run(document: dict[str, Any], *processors: dict[str, Any], **rest: Any) -> Any:
        (outcome,) = make_pipeline(*processors, **rest).run([document])
        return outcome

    return run


@pytest.fixture
def fingerprinter(scheme: Scheme, canonicalizer: Canonicalizer) -> Fingerprinter:
    return Fingerprinter(scheme, canonicalizer)


@pytest.fixture
def engine(tmp_path: Path, canonicalizer: Canonicalizer) -> Iterator[EmbeddedEngine]:
    opened = EmbeddedEngine(tmp_path / "engine", canonicalizer)
    yield opened
    opened.close()
