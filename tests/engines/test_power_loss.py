"""A machine that loses its power in any moment has what was told of, and no file that is damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.decided import create, decided, drop, put, stored
from support.power import Disk

from shinglefold.engines.embedded import EmbeddedEngine


class _Power:
    """Loses the power whenever something is synchronized, and holds what is there against what was told."""

    def __init__(self, folder: Path, words: Any, patch: pytest.MonkeyPatch) -> None:
        self._copies, self._words = folder / "copies", words
        self._told: dict[str, str] | None = None
        self._coming: dict[str, str] | None = None
        self._looks = 0
        self._disk = Disk(folder / "data", patch, self.lose, "pages/tantivy")

    def lose(self) -> None:
        """Open what is on the disk now."""
        self._looks += 1
        self._disk.copy(self._copies / f"{self._looks}")
        with EmbeddedEngine(self._copies / f"{self._looks}", self._words) as engine:
            assert self._found(engine) in (self._told, self._coming)

    def _found(self, engine: EmbeddedEngine) -> dict[str, str] | None:
        if not engine.index_exists("pages"):
            return None
        engine.check("pages")
        found = stored(engine)
        for word in {*found.values()}:
            hits = engine.search("pages", {"query": {"match": {f"new_{word}": "field"}}})["hits"]["hits"]
            assert {hit["_id"] for hit in hits} == {id_ for id_, own in found.items() if own == word}
        return found

    def then(self, do: Callable[[], object], **coming: str | None) -> None:
        """Do something that changes documents, and lose the power when it is told as done."""
        self._coming = {id_: word for id_, word in {**(self._told or {}), **coming}.items() if word}
        do()
        self._told = self._coming
        self.lose()

    def close(self) -> None:
        """Let go of the files."""
        self._disk.close()


@pytest.fixture
def power(tmp_path: Path, words, monkeypatch, late):
    (tmp_path / "data").mkdir()
    made = _Power(tmp_path, words, monkeypatch)
    yield made
    made.close()


def _new(number: int, version: int) -> dict[str, Any]:
    return put(number, version, **{f"new_w{version}": "a field of its own"})


def _index(engine: EmbeddedEngine, *actions: dict[str, Any]) -> None:
    assert not engine.bulk(actions).failures
    engine.refresh("pages")


@pytest.mark.long
def test_power_may_be_lost_in_any_moment(tmp_path: Path, words, power: _Power):
    with EmbeddedEngine(tmp_path / "data", words) as engine:
        power.then(lambda: create(engine))
        power.then(lambda: _index(engine, _new(0, 0)), **{"0": "w0"})
        with engine.lease("pages"):
            power.then(lambda: decided(engine, _new(1, 1), _new(2, 1)), **{"1": "w1", "2": "w1"})
            power.then(lambda: decided(engine, _new(1, 2), _new(3, 2)), **{"1": "w2", "3": "w2"})
            power.then(lambda: engine.refresh("pages"))
            power.then(lambda: decided(engine, drop(2), _new(4, 3)), **{"2": None, "4": "w3"})
            power.then(lambda: decided(engine, _new(2, 4)), **{"2": "w4"})
    power.then(lambda: None)
    with EmbeddedEngine(tmp_path / "data", words) as engine:
        # What a journal has said before is past.
        past = [_new(5, 5), _new(2, 5), drop(4), drop(3)]
        power.then(lambda: _index(engine, *past), **{"5": "w5", "2": "w5", "3": None, "4": None})
        with engine.lease("pages"):
            power.then(lambda: decided(engine, _new(6, 6)), **{"6": "w6"})
    power.then(lambda: None)
