"""What the tests of signing share: a job on one warm canonicalizer, and files of many small ranges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign import run_journal as journal
from shinglefold.offline.sign import tasks
from shinglefold.offline.sign.run import SignJob
from shinglefold.offline.sign.run_journal import identity
from shinglefold.offline.sign.signer import Signer, SignOptions


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a few lines, and a note after each."""
    monkeypatch.setattr(tasks, "LARGEST", 2_000)
    monkeypatch.setattr(tasks, "_SMALLEST", 500)
    monkeypatch.setattr(journal, "_PAUSE", 0.0)


@pytest.fixture
def make_job(scheme: Scheme, canonicalizer: Canonicalizer) -> Callable[..., SignJob]:
    def make(source: object, target: object, /, *, workers: int = 1, **given: Any) -> SignJob:
        reading = ReadOptions(
            **{name: given.pop(name) for name in ("id_field", "max_bytes") if name in given}
        )
        rest = {name: given.pop(name) for name in ("restart", "dead_letters", "parquet") if name in given}
        options = SignOptions(given.pop("fields", ("title", "body")), reading=reading, **given)
        made = identity([str(source)], options, scheme, "")
        place = Path(target) if isinstance(target, str | Path) else target
        signer = Signer(scheme, options, canonicalizer)
        return SignJob((str(source),), signer, place, made, workers=workers, **rest)

    return make
