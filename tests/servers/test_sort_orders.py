"""Every order of hits, read in many small windows: each document is shown once, with the engine's values.

Servers skip documents and shards that can't compete, some of them too many. The complete list is that of one
plain request, which skips nothing.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

import pytest
from support.hits import SCHEME, Spec, fingerprint_of

from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions

#: Four copies of each text, so that a page is read by several requests.
COUNT, TEXTS = 120, 30
#: Documents in a row are in different segments; every third lacks a date, every tenth another field.
SEGMENTS, DATES, OTHERS = 4, 3, 10
WINDOW = FoldOptions(window=13)


def _date(form):
    return lambda n: (datetime(2023, 1, 1) + timedelta(minutes=1977 * n)).strftime(form)


#: The mapping of a field, and its value in a document.
FIELDS = {
    "date": ({"type": "date"}, _date("%Y-%m-%dT%H:%M:%SZ")),
    "time": ({"type": "date", "format": "yyyy-MM-dd HH:mm:ss"}, _date("%Y-%m-%d %H:%M:%S")),
    "day": ({"type": "date", "format": "yyyy-MM-dd"}, _date("%Y-%m-%d")),
    "german": ({"type": "date", "format": "dd.MM.yyyy"}, _date("%d.%m.%Y")),
    "seconds": ({"type": "date", "format": "epoch_second"}, lambda n: 1_672_531_200 + 118_620 * n),
    "long": ({"type": "long"}, lambda n: 2**53 + n if n % 2 else n - 2**60),
    "integer": ({"type": "integer"}, lambda n: 7 * n - 300),
    "short": ({"type": "short"}, lambda n: n % 50),
    "byte": ({"type": "byte"}, lambda n: n % 100 - 50),
    "double": ({"type": "double"}, lambda n: n * 1.1 / 3 - 20),
    "float": ({"type": "float"}, lambda n: n * 0.1 - 5),
    "half": ({"type": "half_float"}, lambda n: n * 0.37 - 9),
    "price": ({"type": "scaled_float", "scaling_factor": 100}, lambda n: round(9.99 + n * 0.37, 2)),
    "unsigned": ({"type": "unsigned_long"}, lambda n: 2**63 + n * 1000 if n % 2 else n),
    "boolean": ({"type": "boolean"}, lambda n: n % 3 == 0),
    "keyword": ({"type": "keyword"}, lambda n: f"k{n % 70}"),
    "ip": ({"type": "ip"}, lambda n: f"10.0.{n // 50}.{n % 50}" if n % 2 else f"2001:db8::{n:x}"),
    "version": ({"type": "version"}, lambda n: f"1.{n % 13}.{n}"),
    "text": ({"type": "text", "fielddata": True}, lambda n: f"word{n % 80}"),
    "several": ({"type": "integer"}, lambda n: [n, n * 37 % COUNT, -n]),
    "geo": ({"type": "geo_point"}, lambda n: {"lat": 40 + n * 0.01, "lon": 20 - n * 0.02}),
    "nested": (
        {"type": "nested", "properties": {"value": {"type": "double"}}},
        lambda n: [{"value": n / 7}, {"value": -n / 3}],
    ),
}
#: Fields of every document: OpenSearch never answers a window that ends with a document without such a value.
WHOLE = {
    "nanos": (
        {"type": "date_nanos"},
        lambda n: f"{_date('%Y-%m-%dT%H:%M:%S')(n)}.{n * 1234567 % 10**9:09}Z",
    ),
    "always": ({"type": "date"}, _date("%Y-%m-%dT%H:%M:%SZ")),
}
#: Fields of types that a minimal distribution of a server lacks.
OPTIONAL = ("price", "unsigned", "version")
FORMATS = {
    "date": ["yyyy-MM", "epoch_second"],
    "time": ["yyyy", "dd.MM.yyyy"],
    "day": ["yyyy", "epoch_millis"],
    "seconds": ["yyyy-MM-dd"],
    "nanos": ["yyyy-MM-dd", "strict_date_optional_time_nanos"],
}
_PLANE = {"geo": {"lat": 41, "lon": 19}, "unit": "km"}
_INSIDE = {"path": "nested"}
_POSITIVE = {"path": "nested", "filter": {"range": {"nested.value": {"gte": 0}}}}
_DOUBLED = "doc['integer'].size() == 0 ? 0 : doc['integer'].value * 2"


def _orders(order: str) -> Iterator[list]:
    for field in [*FIELDS, *WHOLE]:
        if field in ("geo", "nested"):
            continue
        yield [{field: order}]
        if field in FIELDS:
            yield [{field: {"order": order, "missing": "_first"}}]
        for form in FORMATS.get(field, []):
            yield [{field: {"order": order, "format": form}}]
    for field in ("integer", "price", "float", "seconds", "long"):
        yield [{field: {"order": order, "missing": 20}}]
    for mode in ("min", "max", "sum", "avg", "median"):
        yield [{"several": {"order": order, "mode": mode}}]
    yield [{"boolean": order}, {"day": order}]
    yield [{"keyword": order}, {"time": {"order": order, "format": "yyyy-MM"}}]
    yield [{"always": {"order": order, "numeric_type": "date_nanos"}}]
    yield [{"nanos": {"order": order, "numeric_type": "date"}}]
    yield [{"integer": {"order": order, "numeric_type": "double"}}]
    yield [{"nowhere": {"order": order, "unmapped_type": "date"}}, {"integer": "asc"}]
    yield [{"nowhere": {"order": order, "unmapped_type": "keyword"}}]
    yield [{"seen": order}]
    yield [{"_geo_distance": {**_PLANE, "order": order}}]
    yield [{"nested.value": {"order": order, "nested": _INSIDE, "mode": "max"}}]
    yield [{"nested.value": {"order": order, "nested": _POSITIVE, "mode": "min"}}]
    yield [{"_script": {"type": "number", "order": order, "script": {"source": _DOUBLED}}}]
    yield [{"_score": order}, {"day": order}]
    yield [{"_id": order}]


#: Fields by which servers lost hits: sorted both ways, and read by cursor, too.
LOSSY = ("time", "day", "german", "price", "half", "nested.value", "several")


@dataclass(frozen=True)
class Sorted:
    engine: object
    index: str
    folded: FoldedSearch
    shards: int


# An older generation has three shards: over one, only our own request is another.
@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.newest), 3])
def documents(request, engine, server) -> Iterator[Sorted]:
    index = f"shinglefold-test-sorts-{request.param}"
    with _index(engine, index, request.param):
        yield Sorted(
            engine,
            index,
            FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker(), on_trouble="raise"),
            request.param,
        )


@contextmanager
def _index(engine, index, shards):
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    fields = {
        name: one
        for name, one in (FIELDS | WHOLE).items()
        if name not in OPTIONAL or _has(engine, index, name, one[0])
    }
    made = mappings(SCHEME)
    made["properties"] |= {name: mapping for name, (mapping, _) in fields.items()}
    if engine.info()["distribution"] == "elasticsearch":
        # A field of the source that no mapping has.
        made["runtime"] = {"seen": {"type": "long"}}
    engine.create_index(index, made, settings)
    try:
        numbers = list(range(COUNT))
        random.Random(7).shuffle(numbers)
        for segment in range(SEGMENTS):
            engine.bulk([_action(index, n, fields) for n in numbers[segment::SEGMENTS]])
            engine.refresh(index)
        yield
    finally:
        engine.delete_index(index)


def _has(engine, index, name, mapping):
    """Return whether a server has a type of field: minimal distributions lack some."""
    try:
        engine.create_index(f"{index}-{name}", {"properties": {name: mapping}}, {"number_of_replicas": 0})
    except EngineError:
        return False
    engine.delete_index(f"{index}-{name}")
    return True


def _action(index, number, fields):
    source = {"_dedup": fingerprint_of(Spec(original=number % TEXTS)).to_field()}
    for place, (name, (mapping, value)) in enumerate(fields.items()):
        gap = DATES if mapping["type"] == "date" else OTHERS
        if name in WHOLE or (number + place) % gap:
            source[name] = value(number)
    return {"_index": index, "_id": f"d{number}", "_source": source}


def _as_pages(on: Sorted, body):
    starts = range(0, TEXTS, 10)
    return [on.folded.search(on.index, {**body, "from": start, "size": 10}, WINDOW) for start in starts]


def _as_cursor(on: Sorted, body):
    return list(on.folded.pages(on.index, {**body, "size": 9}, WINDOW))


def _as_one_page(on: Sorted, body):
    return [on.folded.search(on.index, {**body, "size": TEXTS + 1}, WINDOW)]


def _under_pit(on: Sorted, body):
    pit = on.engine.open_pit(on.index)
    try:
        return [on.folded.search(None, {**body, "pit": {"id": pit}, "size": TEXTS + 1}, WINDOW)]
    finally:
        on.engine.close_pit(pit)


WAYS = [_as_cursor, _as_one_page, _as_pages, _under_pit]


def test_each_text_is_shown_once_in_the_order_of_the_engine(documents):
    turn = count(documents.shards)
    read = 0
    # What lost nothing is sorted one way over each number of shards.
    other = "asc" if documents.shards == 1 else "desc"
    orders = [
        sort for order in ("asc", "desc") for sort in _orders(order) if _is_lossy(sort) or order == other
    ]
    for sort in [[], *orders]:
        body = {"_source": False, **({"sort": sort} if sort else {})}
        try:
            native = documents.engine.search(documents.index, {**body, "size": COUNT + 1})
        except EngineUnavailable:
            raise
        except EngineError:
            # The type or the option is not of this server: folded it is refused, too.
            with pytest.raises(EngineError):
                _as_one_page(documents, body)
            continue
        ways = [*([_as_cursor] if _is_lossy(sort) else []), WAYS[next(turn) % len(WAYS)]]
        for way in dict.fromkeys(ways):
            _check(sort, native["hits"]["hits"], way(documents, body), way.__name__)
            read += 1
    # Most orders are those of every server.
    assert read > 60


def _is_lossy(sort):
    return any(name in LOSSY for key in sort for name in key)


def _check(sort, native, answers, way):
    where = f"{way}, sorted by {json.dumps(sort)}"
    assert len(native) == COUNT, where
    first: dict[int, object] = {}
    for hit in native:
        first.setdefault(_text(hit), _values(hit, sort))
    shown = [hit for answer in answers for hit in answer["hits"]["hits"]]
    assert sorted(map(_text, shown)) == list(range(TEXTS)), where
    assert [_values(hit, sort) for hit in shown] == list(first.values()), where
    if sort:
        # Among equal hits servers choose any as the first of its text.
        assert all(_values(hit, sort) == first[_text(hit)] for hit in shown), where
    told = answers[-1]["dedup"]
    # A page that is full does not look for the end.
    if told["stopped_by"] != "page_full":
        assert told["groups_total"] == {"value": TEXTS, "relation": "eq"}, where
    assert "partial" not in told, where


def _text(hit):
    return int(hit["_id"][1:]) % TEXTS


def _values(hit, sort):
    """Return the sort values; under a point in time a tiebreaker follows them."""
    return hit.get("sort", [])[: len(sort)]
