"""Random searches for our plugin, over documents of every kind, and what it answers to them."""

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from support.hits import SCHEME, fingerprint_of
from support.random_pages import spec_of
from support.servers.admin import ask
from support.topologies import ranked
from support.trials import properties as trial_properties

from shinglefold.contracts.engine import JSON, Engine

COUNT = 260
_QUERIES: tuple[JSON, ...] = (
    {"match_all": {}},
    {"match": {"body": "a"}},
    {"match": {"body": {"query": "b c", "_name": "asked"}}},
    {"bool": {"filter": [{"term": {"list": 1}}]}},
    {"term": {"number": -1}},
)
_SORTS: tuple[Any, ...] = (
    None,
    None,
    "_score",
    [{"rank": "asc"}],
    {"rank": {"order": "desc"}},
    [{"rank": {"order": "asc", "missing": "_first"}}, "_score"],
    ["_score", {"number": "desc"}],
    [{"published": "desc"}, {"host": {"order": "asc"}}],
)
_POLICIES: tuple[Any, ...] = (
    "rank",
    "longest",
    "newest:published",
    {"oldest": "published"},
    "prefer:host=b.org,a.org",
    "prefer:ratio=10000000.0,1e+16,1e-05",
    ["shortest_url", "longest"],
    ["https_first", "newest:published"],
)
_SCOPES: tuple[Any, ...] = (
    "host",
    "published:1h",
    ["host", {"field": "published", "within": "3d"}],
    "number",
    "ratio",
)
#: Decimals that Python and Java write differently.
_RATIOS = (0.5, 1e7, 12345678.25, 1e16, 2e22, 1e-5, -3.0)
_SOURCES: tuple[Any, ...] = (True, False, ["number"], {"excludes": ["body", "_dedup"]})
#: Parts of a request that decide what is shown of its hits, or which there are.
SHOWN: tuple[tuple[str, Any], ...] = (
    ("docvalue_fields", ["host", "published"]),
    ("docvalue_fields", ["_dedup.digest"]),
    ("fields", ["number", "_dedup.d*"]),
    ("highlight", {"fields": {"body": {}}}),
    ("aggs", {"hosts": {"terms": {"field": "host"}}}),
    ("version", True),
    ("seq_no_primary_term", True),
    ("explain", True),
    ("track_total_hits", False),
    ("track_total_hits", 20),
    ("track_scores", True),
    ("min_score", 0.3),
    ("post_filter", {"term": {"list": 2}}),
    ("stored_fields", "_none_"),
    ("script_fields", {"twice": {"script": "doc['number'].value * 2"}}),
    ("terminate_after", 30),
    ("timeout", "10s"),
    ("rescore", []),
)


def properties() -> JSON:
    made = trial_properties()
    made["properties"] |= {
        "host": {"type": "keyword"},
        "url": {"type": "keyword"},
        "published": {"type": "date"},
        "ratio": {"type": "double"},
    }
    return made


@cache
def documents() -> list[JSON]:
    """Return documents that match more or less, some with a damaged fingerprint or none: to be read only."""
    return ranked([_document(number, random.Random(number)) for number in range(COUNT)])


def _document(number: int, rng: random.Random) -> JSON:
    spec = spec_of(number)
    made: JSON = {
        "number": number,
        "list": number % 3,
        "ratio": _RATIOS[number % 7],
        "body": " ".join(rng.choices("abc", k=rng.randrange(1, 5))),
        "published": f"2026-01-{1 + number % 9:02}T0{number % 10}:00:00Z" if number % 7 else None,
        "url": [f"http{'s' * (number % 2)}://{spec.host}/{'x' * rng.randrange(5)}"],
        "_dedup": _spoiled(fingerprint_of(spec).to_field(), number, rng),
    }
    if spec.host is not None:
        made["host"] = spec.host if number % 11 else [spec.host, "c.org"]
    return made


def _spoiled(stored: JSON, number: int, rng: random.Random) -> JSON | None:
    """Return one fingerprint in six with facts, damaged, or not at all."""
    digest = stored["digest"]
    signature = stored.get("signature", "AAAA")
    changes: dict[int, JSON | None] = {
        0: {"digest": f"{digest}~{'f' * 10}{rng.choice('AB')}"},
        1: {"digest": f"{digest}~{'f' * 10}{rng.choice('AB')}"},
        2: {"signature": signature[:-8]},
        3: {
            "digest": rng.choice(
                ["x", "", "a.b", "..1.", digest + ".seal", "a.b.-1.c", f"{SCHEME.id}.ru.9e9.x"]
            )
        },
        4: {"signature": [signature, signature[::-1]], "digest": [digest, "sf9-x.ru.3.y"]},
        5: {"signature": ""},
        6: None,
        7: {"supershingles": []},
    }
    kind = number % 40
    if kind not in changes:
        return stored
    change = changes[kind]
    return None if change is None else {**stored, **change}


def request_of(seed: int) -> JSON:
    """Return the body of a search with options, chosen by its seed."""
    rng = random.Random(seed)
    window = rng.choice([5, 17, 40, 200, None])
    dedup = {
        "window": window,
        "max_window": rng.choice([None, None, 20, 60, 200]),
        "members": rng.choice([None, 0, 2, 1000]),
        "min_resemblance": rng.choice([None, None, 0, 0.3, 0.7, 1]),
        "min_shared": rng.choice([None, None, None, 1, 3]),
        "min_length_ratio": rng.choice([None, None, 0, 0.9]),
        "representative": rng.choice([None, None, rng.choice(_POLICIES)]),
        "scope": rng.choice([None, None, rng.choice(_SCOPES)]),
    }
    if dedup["min_resemblance"] == 0 and dedup["min_shared"] is None:
        dedup["min_shared"] = 1
    if (dedup["max_window"] or 1000) < (window or 200):
        dedup["max_window"] = None
    body: JSON = {
        "query": rng.choice(_QUERIES),
        "size": rng.randrange(1, 30),
        "_source": rng.choice(_SOURCES),
    }
    if rng.random() < 0.3:
        body["from"] = rng.randrange(60)
    if (sort := rng.choice(_SORTS)) is not None:
        body["sort"] = sort
    if rng.random() < 0.6:
        body |= dict(rng.sample(SHOWN, 2))
    if body.get("stored_fields"):
        # Neither sources nor supershingles can be read then.
        body["_source"] = False
        del dedup["min_shared"]
        dedup["min_resemblance"] = dedup["min_resemblance"] or None
        body = {key: body[key] for key in body if key not in ("version", "explain", "fields", "highlight")}
    return {**body, "ext": {"dedup": {name: value for name, value in dedup.items() if value is not None}}}


@contextmanager
def indexed(
    engine: Engine, name: str, stored: Iterable[JSON], mapped: JSON | None = None, **settings: Any
) -> Iterator[str]:
    """Make an index of documents, and delete it afterwards."""
    shards = {"number_of_shards": 2, "number_of_replicas": 0}
    engine.create_index(name, mapped or properties(), {**shards, **settings})
    try:
        engine.bulk({"_index": name, "_id": str(one["number"]), "_source": one} for one in stored)
        engine.refresh(name)
        yield name
    finally:
        engine.delete_index(name)


def by_plugin(url: str, target: str, body: Mapping[str, Any]) -> JSON:
    """Return the answer of a server that has the plugin."""
    return ask(url, "POST", f"/{target}/_search", body)


def comparable(answer: JSON) -> JSON:
    """Return an answer without its time, and without the way by which it was made."""
    made = {name: value for name, value in answer.items() if name != "took"}
    made["dedup"] = {
        name: value for name, value in answer["dedup"].items() if name not in ("mode", "mode_reason")
    }
    return made
