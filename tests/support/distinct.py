"""An index whose documents all differ, and how a folded answer about it is held against the engine's own."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from support.servers.admin import send

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines.http.errors import refusal
from shinglefold.engines.http.responses import search_path
from shinglefold.errors import EngineError, UnsupportedQuery
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.scheme import Scheme

COUNT = 24
_TAGS = ("red", "green", "blue")
_TOPICS = ("water", "bridge", "harbour", "market")
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ra", "se", "ti", "vo", "zu")
_TEXT: JSON = {"type": "text", "term_vector": "with_positions_offsets"}
#: What every server has.
_FIELDS: JSON = {
    "title": {**_TEXT, "store": True, "fields": {"raw": {"type": "keyword"}}},
    "body": {**_TEXT, "fields": {"plain": {"type": "text"}}},
    "tag": {"type": "keyword", "store": True},
    "day": {"type": "date"},
    "number": {"type": "integer"},
    "odd": {"type": "boolean"},
    "place": {"type": "geo_point"},
    "address": {"type": "ip"},
    "span": {"type": "integer_range"},
    "comments": {
        "type": "nested",
        "properties": {
            "author": {"type": "keyword"},
            "text": {"type": "text"},
            "stars": {"type": "integer"},
            "replies": {"type": "nested", "properties": {"text": {"type": "text"}}},
        },
    },
    "completion": {"type": "completion"},
    "other": {"type": "alias", "path": "tag"},
    "short": {"type": "keyword", "ignore_above": 3},
}
#: What only some servers have, by module.
_OPTIONAL: JSON = {
    "price": {"type": "scaled_float", "scaling_factor": 100},
    "links": {"type": "rank_feature"},
    "kind": {"type": "join", "relations": {"page": "review"}},
    "stored_query": {"type": "percolator"},
    "vector": {"type": "dense_vector", "dims": 3, "index": True, "similarity": "l2_norm"},
    "typed": {"type": "search_as_you_type"},
    "flat": {"type": "flattened"},
    "flat_object": {"type": "flat_object"},
}


def index_documents_that_differ(
    engine: Engine,
    index: str,
    shards: int,
    scheme: Scheme,
    canonicalizer: Canonicalizer,
    *,
    first: int = 0,
    signed: bool = True,
) -> None:
    """Make an index of ``COUNT`` documents, no two of them alike; reviews are among them.

    Each is the only one of its group.

    Args:
        first: the number of the first; documents of different numbers differ, too.
        signed: whether the index has a recipe, and the documents have fingerprints.
    """
    made: JSON = (
        recipe_mappings(replace(default_recipe(scheme), groups=True)) if signed else {"properties": {}}
    )
    fields: JSON = {**_FIELDS, **_OPTIONAL}
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    while True:
        try:
            engine.create_index(index, {**made, "properties": {**made["properties"], **fields}}, settings)
            break
        except UnsupportedQuery as error:
            # The error names the type of field that this server lacks.
            lacking = [name for name, one in _OPTIONAL.items() if f"[{one['type']}]" in str(error)]
            if not fields.keys() & set(lacking):
                raise
            fields = {name: one for name, one in fields.items() if name not in lacking}
    documents = [_document(first + number) for number in range(COUNT)]
    prints = Fingerprinter(scheme, canonicalizer).fingerprint([one["body"] for one in documents])
    actions = [
        {
            "_index": index,
            "_id": str(number),
            **({"routing": _routing(number)} if "kind" in fields or number % 8 == 7 else {}),
            "_source": {name: one[name] for name in one if name in fields}
            | ({"_dedup": {**made.to_field(), "group": first + number, "leader": True}} if signed else {}),
        }
        for number, (one, made) in enumerate(zip(documents, prints, strict=True))
    ]
    assert not engine.bulk(actions).failures
    engine.refresh(index)


def _routing(number: int) -> str:
    """A review is routed as its page."""
    return f"r{number - 1 if number % 8 == 7 else number}"


def _document(number: int) -> JSON:
    rng = random.Random(number)
    words = ["".join(rng.choices(_SYLLABLES, k=3)) for _ in range(30 + number)]
    for place, topic in enumerate(_TOPICS):
        words += [topic] * ((number * (place + 3)) % 7)
    rng.shuffle(words)
    title = f"{_TOPICS[number % 4]} {_TAGS[number % 3]} report {words[0]}"
    found: JSON = {
        "title": title,
        "body": " ".join(words),
        "tag": [_TAGS[number % 3], f"n{number % 5}"],
        "day": f"2024-0{number % 9 + 1}-{number % 28 + 1:02}",
        "number": number // COUNT * COUNT + number * 7 % COUNT,
        "odd": number % 2 == 1,
        "place": {"lat": number % 90, "lon": 2.5 * (number % 70)},
        "address": f"10.0.0.{number}",
        "span": {"gte": number, "lt": number + 5},
        "comments": [
            {
                "author": f"a{one}",
                "text": f"{_TOPICS[one]} {words[one]}",
                "stars": (number + one) % 5,
                "replies": [{"text": f"{_TOPICS[one - 1]} yes"}],
            }
            for one in range(number % 4)
        ],
        "completion": {"input": [title, words[1]], "weight": number},
        "short": ["ab", "abcdef"],
        "price": number * 1.25 + 0.5,
        "links": number + 1,
        "stored_query": {"term": {"tag": _TAGS[number % 3]}},
        "vector": [number / 10, 1.0 - number / 30, (number % 5) / 5],
        "typed": title,
        "flat": {"colour": _TAGS[number % 3], "depth": number},
        "flat_object": {"colour": _TAGS[number % 3], "depth": number},
    }
    found["kind"] = {"name": "review", "parent": str(number % COUNT - 1)} if number % 8 == 7 else "page"
    if number % 6 == 5:
        del found["day"], found["price"]
    return found


def search_plainly(
    url: str, index: str | None, body: JSON, parameters: Mapping[str, Any]
) -> JSON | EngineError:
    """Return a server's own answer to a request, past all clients, or the error that it means."""
    given = {
        name: ",".join(value)
        if isinstance(value, list)
        else str(value).lower()
        if value in (True, False)
        else value
        for name, value in parameters.items()
    }
    path = f"{search_path(index, '_search')}?{urlencode(given)}"
    status, _, answer = send(url + path, "POST", body)
    found: JSON = json.loads(answer)
    return found if status == 200 else refusal(status, found, "the server")


def differences(one: object, other: object, path: str = "") -> list[str]:
    """Return where two answers differ, and what each has there."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return [
            line
            for name in sorted(one.keys() | other.keys())
            for line in differences(one.get(name, _ABSENT), other.get(name, _ABSENT), f"{path}.{name}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{path}[{at}]")]
    return [] if one == other else [f"{path}: {one!s:.150} | {other!s:.150}"]


_ABSENT = "(not there)"
#: Parts of an answer that differ each time, or between two requests for the same hits.
_TIMES = ("took", "phase_took")
#: Of a profile only what was searched is compared: times differ, and the window asks for other fields.
_PROFILED = ("type", "description", "children")


def comparable(answer: JSON) -> JSON:
    """Return an answer without what folding adds, and without times; equal hits in the order of their ids."""
    rest = {name: value for name, value in answer.items() if name not in (*_TIMES, "dedup", "pit_id")}
    if "profile" in rest:
        rest["profile"] = _profile(rest["profile"])
    hits = rest.get("hits", {})
    if "hits" in hits:
        rest["hits"] = {**hits, "hits": _sorted_ties([_without_members(hit) for hit in hits["hits"]])}
    return rest


def _without_members(hit: JSON) -> JSON:
    inner = {name: found for name, found in hit.get("inner_hits", {}).items() if name != "duplicates"}
    rest = {name: value for name, value in hit.items() if name != "inner_hits"}
    return rest | ({"inner_hits": inner} if inner else {})


def _sorted_ties(hits: Sequence[JSON]) -> list[JSON]:
    """Return hits with equal scores and sort values in the order of their ids."""
    ranks: list[int] = []
    for before, hit in zip([None, *hits], hits, strict=False):
        same = before is not None and _rank(before) == _rank(hit)
        ranks.append(ranks[-1] if same else len(ranks))
    ordered = sorted(zip(ranks, hits, strict=True), key=lambda one: (one[0], str(one[1].get("_id"))))
    return [hit for _, hit in ordered]


def _rank(hit: Mapping[str, Any]) -> tuple[Any, Any]:
    return hit.get("_score"), hit.get("sort")


def _profile(profile: JSON) -> Any:
    searches = [
        [_queries(search["query"]) for search in shard["searches"]] for shard in profile.get("shards", ())
    ]
    return sorted(map(repr, searches))


def _queries(queries: Sequence[JSON]) -> list[JSON]:
    return [
        {name: one[name] for name in _PROFILED[:2]} | {"children": _queries(one.get("children", ()))}
        for one in queries
    ]
