"""An index that a later version has written is told as what it is: newer, and not damaged."""

import json
from pathlib import Path

import pytest

from shinglefold import __version__
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable


@pytest.fixture
def catalog(tmp_path: Path, words) -> Path:
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk([{"_index": "pages", "_id": "1", "_source": {"body": "page one"}}])
    return tmp_path / "pages" / "catalog.json"


def _made_by(catalog: Path, format_: object, **more: object) -> bytes:
    data = {**json.loads(catalog.read_text()), "format": format_, **more}
    catalog.write_text(json.dumps(data))
    return catalog.read_bytes()


# Whatever else a later version keeps, and however.
@pytest.mark.parametrize("more", [{}, {"checksum": "of another kind"}, {"mappings": None, "parts": []}])
def test_an_index_of_a_later_version_says_to_upgrade(catalog: Path, words, more):
    before = _made_by(catalog, 5, **more)
    with EmbeddedEngine(catalog.parent.parent, words) as engine:
        tries = (
            lambda: engine.search("pages", {}),
            lambda: engine.get("pages", "1"),
            lambda: engine.bulk([{"_index": "pages", "_id": "2", "_source": {"body": "page two"}}]),
            lambda: engine.mappings("pages"),
            lambda: engine.check("pages"),
        )
        for attempt in tries:
            with pytest.raises(EngineUnavailable) as told:
                attempt()
            message = str(told.value)
            assert "written by a later version of shinglefold: its format is 5" in message
            assert f"{__version__} reads format 4. Upgrade shinglefold: pip install --upgrade" in message
            assert "damaged" not in message
        assert [info.documents for info in engine.indices()] == [None]
    assert catalog.read_bytes() == before


def test_a_search_that_goes_on_while_a_later_version_takes_the_index_over_says_so(catalog: Path, words):
    with EmbeddedEngine(catalog.parent.parent, words) as engine:
        assert engine.search("pages", {})["hits"]["hits"]
        _made_by(catalog, 5)
        with pytest.raises(EngineUnavailable, match="later version"):
            engine.search("pages", {})


@pytest.mark.parametrize("kind", ["float", "half_float", "double", "long"])
def test_an_index_from_before_floats_were_rounded_is_read_only_without_floats(catalog: Path, words, kind):
    with EmbeddedEngine(catalog.parent.parent, words) as engine:
        engine.put_mappings("pages", {"properties": {"price": {"type": kind}}})
    _made_by(catalog, 3)
    with EmbeddedEngine(catalog.parent.parent, words) as engine:
        if kind in ("double", "long"):
            assert len(engine.search("pages", {})["hits"]["hits"]) == 1
        else:
            with pytest.raises(EngineUnavailable, match=r"its format is 3.* index again"):
                engine.search("pages", {})


@pytest.mark.parametrize("format_", [0, -1, 2, True, "5", None, 5.5])
def test_what_no_version_writes_is_damage(catalog: Path, words, format_):
    _made_by(catalog, format_)
    with (
        EmbeddedEngine(catalog.parent.parent, words) as engine,
        pytest.raises(EngineUnavailable, match=r"is damaged: catalog.json: its format is"),
    ):
        engine.search("pages", {})


def test_an_index_of_a_later_version_can_be_deleted(catalog: Path, words):
    _made_by(catalog, 5)
    with EmbeddedEngine(catalog.parent.parent, words) as engine:
        engine.delete_index("pages")
        assert not engine.index_exists("pages")
