"""Queries, orders and pages against a reference that looks at every document in turn."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.engines.embedded import EmbeddedEngine

_WORDS = ("heron", "river", "lake", "eagle", "pike")
_TAGS = ("", "A", "a", "b b", "ь", "漢")
_COUNT = 90


def _documents() -> list[dict[str, Any]]:
    rng = random.Random(7)
    made = []
    for _ in range(_COUNT):
        source = {
            "text": " ".join(rng.choices(_WORDS, k=rng.randint(1, 6))),
            "tags": rng.choices(_TAGS, k=rng.randint(0, 3)),
            "numbers": [rng.randint(-3, 3) for _ in range(rng.randint(0, 3))],
            "ratio": rng.choice([-0.5, 0.0, 0.25, 1e300]),
        }
        made.append({name: value for name, value in source.items() if rng.random() < 0.85})
    return made


_DOCUMENTS = _documents()
_MAPPINGS = {
    "properties": {
        "text": {"type": "text"},
        "tags": {"type": "keyword"},
        "numbers": {"type": "long"},
        "ratio": {"type": "double"},
    }
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, words) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("reference"), words) as opened:
        opened.create_index("all", _MAPPINGS, {})
        for start in range(0, _COUNT, 30):
            batch = enumerate(_DOCUMENTS[start : start + 30], start)
            opened.bulk({"_index": "all", "_id": str(n), "_source": source} for n, source in batch)
            opened.refresh("all")
        yield opened


def _values(source: dict[str, Any], name: str) -> list[Any]:
    value = source.get(name, [])
    return value if isinstance(value, list) else [value]


def _reference(query: dict[str, Any], source: dict[str, Any]) -> bool:
    ((kind, body),) = query.items()
    return _REFERENCE[kind](body, source)


def _term(body: dict[str, Any], source: dict[str, Any]) -> bool:
    ((name, value),) = body.items()
    return value in _values(source, name)


def _terms(body: dict[str, Any], source: dict[str, Any]) -> bool:
    ((name, values),) = body.items()
    return bool(set(values) & set(_values(source, name)))


def _match(body: dict[str, Any], source: dict[str, Any]) -> bool:
    ((_, options),) = body.items()
    has = [word in source.get("text", "").split() for word in options["query"].split()]
    return all(has) and bool(has) if options["operator"] == "and" else any(has)


def _phrase(body: dict[str, Any], source: dict[str, Any]) -> bool:
    ((_, text),) = body.items()
    return f" {text} " in f" {source.get('text', '')} "


def _range(body: dict[str, Any], source: dict[str, Any]) -> bool:
    ((name, bounds),) = body.items()
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "gte": lambda a, b: a >= b,
        "gt": lambda a, b: a > b,
        "lte": lambda a, b: a <= b,
        "lt": lambda a, b: a < b,
    }
    return any(all(tests[k](value, b) for k, b in bounds.items()) for value in _values(source, name))


def _bool(body: dict[str, Any], source: dict[str, Any]) -> bool:
    should = [_reference(query, source) for query in body.get("should", [])]
    least = body.get(
        "minimum_should_match", 0 if body.get("must") or body.get("filter") else min(1, len(should))
    )
    return (
        all(_reference(query, source) for query in [*body.get("must", []), *body.get("filter", [])])
        and not any(_reference(query, source) for query in body.get("must_not", []))
        and (not should or sum(should) >= least)
    )


_REFERENCE: dict[str, Callable[[dict[str, Any], dict[str, Any]], bool]] = {
    "match_all": lambda _, __: True,
    "match_none": lambda _, __: False,
    "term": _term,
    "terms": _terms,
    "match": _match,
    "match_phrase": _phrase,
    "range": _range,
    "exists": lambda body, source: bool(_values(source, body["field"])),
    "bool": _bool,
}

_FIELDS = {
    "tags": st.sampled_from(_TAGS),
    "numbers": st.integers(-4, 4),
    "ratio": st.sampled_from([-0.5, 0.0, 0.1, 0.25, 1e300]),
}


def _on_field(make: Callable[[str, st.SearchStrategy], st.SearchStrategy]) -> st.SearchStrategy:
    return st.one_of([make(name, values) for name, values in _FIELDS.items()])


_text = st.lists(st.sampled_from([*_WORDS, "absent"]), min_size=1, max_size=3).map(" ".join)
_leaf = st.one_of(
    st.just({"match_all": {}}),
    st.just({"match_none": {}}),
    st.sampled_from(["text", *_FIELDS]).map(lambda name: {"exists": {"field": name}}),
    _on_field(lambda name, values: values.map(lambda value: {"term": {name: value}})),
    _on_field(lambda name, values: st.lists(values, max_size=3).map(lambda some: {"terms": {name: some}})),
    _on_field(
        lambda name, values: st.tuples(
            st.sampled_from(["gte", "gt"]), values, st.sampled_from(["lte", "lt"]), values
        ).map(lambda b: {"range": {name: {b[0]: b[1], b[2]: b[3]}}})
    ),
    st.tuples(_text, st.sampled_from(["or", "and"])).map(
        lambda given: {"match": {"text": {"query": given[0], "operator": given[1]}}}
    ),
    _text.map(lambda text: {"match_phrase": {"text": text}}),
)


def _bools(children: st.SearchStrategy) -> st.SearchStrategy:
    clauses = st.lists(children, min_size=1, max_size=3)
    names = dict.fromkeys(("must", "filter", "should", "must_not"), clauses)
    with_minimum = st.fixed_dictionaries({"should": clauses, "minimum_should_match": st.integers(0, 4)})
    return st.one_of(st.fixed_dictionaries({}, optional=names), with_minimum).map(lambda body: {"bool": body})


_queries = st.recursive(_leaf, _bools, max_leaves=8)
_quick = settings(
    max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(query=_queries)
@_quick
def test_a_query_finds_what_the_reference_finds(engine, query):
    response = engine.search("all", {"query": query, "size": _COUNT})
    expected = {str(n) for n, source in enumerate(_DOCUMENTS) if _reference(query, source)}
    assert {hit["_id"] for hit in response["hits"]["hits"]} == expected
    assert response["hits"]["total"]["value"] == len(expected)


def _sort_key(source: dict[str, Any], name: str, descending: bool, first: bool) -> tuple[int, Any]:
    values = _values(source, name)
    if not values:
        return (-1 if first else 1, 0)
    ranks = sorted({value for document in _DOCUMENTS for value in _values(document, name)})
    rank = ranks.index(max(values) if descending else min(values))
    return (0, -rank if descending else rank)


_keys = st.tuples(st.sampled_from(list(_FIELDS)), st.booleans(), st.booleans())


@given(keys=st.lists(_keys, min_size=1, max_size=3, unique_by=lambda key: key[0]), size=st.integers(1, 40))
@settings(_quick, max_examples=examples(60))
def test_an_order_is_the_reference_order_in_pages_of_any_size(engine, keys, size):
    sort = [
        {name: {"order": "desc" if descending else "asc", "missing": "_first" if first else "_last"}}
        for name, descending, first in keys
    ]
    pit = engine.open_pit("all")
    read: list[dict[str, Any]] = []
    body: dict[str, Any] = {"pit": {"id": pit}, "sort": sort, "size": size}
    while page := engine.search(None, body)["hits"]["hits"]:
        read += page
        body["search_after"] = page[-1]["sort"]
    engine.close_pit(pit)
    assert sorted(int(hit["_id"]) for hit in read) == list(range(_COUNT))
    got = [[_sort_key(hit["_source"], *key) for key in keys] for hit in read]
    assert got == sorted(got)


@given(query=_queries, size=st.integers(1, 40))
@settings(_quick, max_examples=examples(60))
def test_pages_by_score_are_slices_of_the_whole(engine, query, size):
    whole = engine.search("all", {"query": query, "size": _COUNT})["hits"]["hits"]
    scores = [hit["_score"] for hit in whole]
    assert scores == sorted(scores, reverse=True)
    pages = (
        engine.search("all", {"query": query, "from": start, "size": size})["hits"]["hits"]
        for start in range(0, _COUNT, size)
    )
    assert [hit for page in pages for hit in page] == whole
