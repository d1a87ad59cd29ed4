"""A disk that is full costs what was not committed, and nothing else: not the index, not what comes after."""

import random
from pathlib import Path

import pytest
from support.disks import fill_disk

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineError, IndexReadOnly

_CHANCE = random.Random(4)


def _page(number: int, where: str, size: int = 2_000) -> dict:
    """Return a page whose text is in its head, in what is stored, or in the words that are searched."""
    noise = _CHANCE.randbytes(size // 2).hex()
    if where == "words":
        noise = " ".join(noise[at : at + 6] for at in range(0, size, 6))
    body = {"inner": {"noise": noise}} if where == "heads" else {"noise": noise}
    return {"_index": "pages", "_id": str(number), "_source": {"n": number, **body}}


_MAPPINGS = {
    where: {"properties": {"n": {"type": "long"}, "noise": {"type": "text", "index": where == "words"}}}
    for where in ("heads", "stored", "words")
}
_MAPPINGS["heads"]["properties"]["inner"] = {"type": "object", "dynamic": False}


def _numbers(engine: EmbeddedEngine) -> list[int]:
    body = {"size": 500, "sort": ["n"]}
    return [hit["_source"]["n"] for hit in engine.search("pages", body)["hits"]["hits"]]


@pytest.mark.long(every=6)
@pytest.mark.parametrize("where", ["heads", "stored", "words"])
@pytest.mark.parametrize("left", [0, 60_000])
def test_an_engine_goes_on_once_there_is_room_again(small_disk: Path, words, where, left):
    with EmbeddedEngine(small_disk / "data", words) as engine:
        engine.create_index("pages", _MAPPINGS[where], {})
        engine.bulk(_page(number, where) for number in range(9))
        engine.refresh("pages")
        filling = fill_disk(small_disk, left)
        engine.bulk(_page(number, where) for number in range(5, 105))
        with pytest.raises(IndexReadOnly, match="the disk is full") as told:
            engine.refresh("pages")
        assert told.value.lost == 100
        assert _numbers(engine) == list(range(9))
        engine.bulk(_page(number, where) for number in range(200, 300))
        with pytest.raises(EngineError):
            engine.refresh("pages")
        filling.unlink()
        engine.bulk([_page(7, where), _page(300, where)])
        engine.refresh("pages")
        assert _numbers(engine) == [*range(9), 300]
        engine.check("pages")
    with EmbeddedEngine(small_disk / "data", words) as again:
        again.check("pages")
        assert _numbers(again) == [*range(9), 300]


def test_an_engine_that_is_closed_on_a_full_disk_leaves_what_was_committed(small_disk: Path, words):
    engine = EmbeddedEngine(small_disk / "data", words)
    engine.create_index("pages", _MAPPINGS["heads"], {})
    engine.bulk(_page(number, "heads") for number in range(9))
    engine.refresh("pages")
    filling = fill_disk(small_disk, 0)
    engine.bulk(_page(number, "heads") for number in range(5, 105))
    with pytest.raises(IndexReadOnly) as told:
        engine.close()
    assert told.value.lost == 100
    filling.unlink()
    with EmbeddedEngine(small_disk / "data", words) as again:
        again.bulk([_page(300, "heads")])
        again.refresh("pages")
        again.check("pages")
        assert _numbers(again) == [*range(9), 300]


@pytest.mark.long
@pytest.mark.parametrize("where", ["heads", "words"])
def test_what_was_decided_is_kept_before_and_after_and_what_failed_was_told(
    small_disk: Path, words, monkeypatch, where
):
    # A commit now and then, beside what is decided.
    monkeypatch.setattr("shinglefold.engines.embedded.store.writer._DOCUMENTS", 7)
    kept: list[int] = []
    told: list[str] = []
    with EmbeddedEngine(small_disk / "data", words) as engine:
        engine.create_index("pages", _MAPPINGS[where], {})
        for number in range(90):
            if number == 20:
                filling = fill_disk(small_disk, 20_000)
            if number == 80:
                filling.unlink()
            try:
                with engine.deciding("pages", ("n",)):
                    engine.bulk([_page(number, where)])
            except EngineError as error:
                told.append(str(error))
            else:
                kept.append(number)
        assert kept[:20] == list(range(20))
        assert kept[-9:] == list(range(81, 90))
        assert len(told) == 90 - len(kept) > 5
        assert all("the disk is full" in reason for reason in told)
        engine.refresh("pages")
        engine.check("pages")
        assert set(kept) <= set(_numbers(engine))
    with EmbeddedEngine(small_disk / "data", words) as again:
        again.check("pages")
        assert set(kept) <= set(_numbers(again))


def test_a_full_disk_asks_for_documents_again_only_where_some_are_lost(small_disk: Path, words):
    with EmbeddedEngine(small_disk / "data", words) as engine:
        engine.create_index("pages", {"properties": {"n": {"type": "long"}}}, {})
        filling = fill_disk(small_disk, 0)
        tried = "Make room and try it again; all documents stored before are there"
        with pytest.raises(IndexReadOnly, match=f"writing to pages: the disk is full .*{tried}"):
            engine.put_mappings("pages", {"properties": {"m": {"type": "long"}}})
        with pytest.raises(IndexReadOnly, match=f"creating news: the disk is full .*{tried}"):
            engine.create_index("news", {}, {})
        filling.unlink()
        engine.put_mappings("pages", {"properties": {"m": {"type": "long"}}})
        engine.create_index("news", {}, {})
        assert engine.mappings("pages")["properties"].keys() == {"n", "m"}
