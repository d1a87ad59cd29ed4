"""Damaged, missing and foreign fingerprints count for the plugin as for ``FoldedSearch``."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from support.hits import SCHEME
from support.plugin_trials import by_plugin, comparable, documents, properties

from shinglefold.contracts.engine import JSON
from shinglefold.rerank import FoldedSearch

Change = Callable[[JSON], Any]


def _digest(head: str) -> Change:
    return lambda stored: {**stored, "digest": f"{SCHEME.id}.{head}"}


def _part(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda stored: {**stored, name: change(stored[name])}


def _without(name: str) -> Change:
    return lambda stored: {part: value for part, value in stored.items() if part != name}


CHANGES: dict[str, Change] = {
    "cut signature": _part("signature", lambda text: text[:-8]),
    "signature without base64": _part("signature", lambda _: "!"),
    "signature with a space": _part("signature", lambda text: f"{text[:20]} {text[20:]}"),
    "padded signature": _part("signature", lambda text: f"{text}===="),
    "long signature": _part("signature", lambda text: text * 300),
    "two signatures": _part("signature", lambda text: [text, text[::-1]]),
    "one signature twice": _part("signature", lambda text: [text, text]),
    "empty signature": _part("signature", lambda _: ""),
    "no list of signatures": _part("signature", lambda _: []),
    "no signature": _without("signature"),
    "cut digest": _part("digest", lambda _: "sf9"),
    "empty digest": _part("digest", lambda _: ""),
    "no digest": _without("digest"),
    "sealed digest": _part("digest", lambda text: f"{text}.seal"),
    "digest with an emoji": _part("digest", lambda text: text + "😀" * 140),
    "long digest": _part("digest", lambda text: text + "x" * 280),
    "one digest twice": _part("digest", lambda text: [text, text]),
    "two digests": _part("digest", lambda text: [text, "sf9-x.ru.3.y"]),
    "negative length": _digest("ru.-3.x"),
    "length with a sign": _digest("ru.+3.x"),
    "length with a space": _digest("ru. 3.x"),
    "length with an underscore": _digest("ru.3_0.x"),
    "too great a length": _digest(f"ru.{2**50 + 1}.x"),
    "no language": _digest(".30.x"),
    "two languages": _digest("r.u.30.x"),
    "facts": _part("digest", lambda text: f"{text}~aaaa"),
    "another scheme": lambda stored: {**stored, "digest": "sf9-0.ru.300.x"},
    "another scheme without a text": lambda stored: {**stored, "digest": "sf9-0.ru.300."},
    "nothing": lambda _: None,
    "an empty object": lambda _: {},
    "supershingles alone": lambda stored: {"supershingles": stored["supershingles"]},
    "many supershingles": _part("supershingles", lambda _: [f"w{number}" for number in range(60)]),
    "long supershingles": _part("supershingles", lambda _: ["w" * 301]),
    "a list of objects": lambda stored: [stored],
    "an object twice": lambda stored: [stored, stored],
    "a placeholder": lambda _: {"pending": "2026-01-01T00:00:00Z"},
}
BODIES: dict[str, JSON] = {
    "usual": {},
    "explained": {"explain": True},
    "explained, no sources": {"explain": True, "_source": False},
    "fields": {"fields": ["_dedup.*"]},
    "fields, explained": {"fields": ["_dedup.*"], "explain": True},
    "highlighted": {"highlight": {"fields": {"body": {}}}},
    "named": {"query": {"match_all": {"_name": "all"}}},
    "scripts": {"script_fields": {"one": {"script": "1"}}},
    "sorted": {"sort": [{"rank": "asc"}], "track_scores": True},
}
OPTIONS: dict[str, JSON] = {
    "usual": {},
    "supershingles": {"min_shared": 1},
    "supershingles alone": {"min_shared": 1, "min_resemblance": 0},
    "policy and scope": {"representative": "longest", "scope": "_dedup.digest"},
}


def _changed(change: Change) -> list[JSON]:
    """Return documents of which three in four have a changed fingerprint."""
    sound = [
        one
        for one in documents()
        if one["number"] % 40 > 7
        and one["_dedup"].get("signature")
        and one["_dedup"]["digest"].startswith(SCHEME.id)
    ][:24]
    return [{**one, "_dedup": change(one["_dedup"])} if place % 4 else one for place, one in enumerate(sound)]


@pytest.mark.parametrize("shards", [1, 5])
def test_each_kind_counts_as_in_python(server, engine, shards):
    name = f"shinglefold-test-damaged-{shards}"
    folded = FoldedSearch(engine, SCHEME)
    met = set()
    ways = cycle(OPTIONS.items())
    engine.create_index(name, properties(), {"number_of_shards": shards, "number_of_replicas": 0})
    try:
        for kind, change in CHANGES.items():
            stored = _changed(change)
            # Some of them the index refuses.
            engine.bulk({"_index": name, "_id": str(one["number"]), "_source": one} for one in stored)
            engine.refresh(name)
            # Nine bodies and four options: in turn each kind meets all of them.
            # What is shown of hits does not change their groups.
            told = [folded.search(name, body)["dedup"] for body in ({}, {"explain": True})]
            assert told[0] == told[1], kind
            for (shown, parts), (chosen, options) in zip(BODIES.items(), ways, strict=False):
                body = {"size": 7, **parts, "ext": {"dedup": {"members": 2, **options}}}
                found = by_plugin(server.url, name, body)
                told = found["dedup"]
                assert told["mode"] == "server", (kind, shown, chosen)
                assert comparable(found) == comparable(folded.search(name, body)), (kind, shown, chosen)
                met |= {one for one in ("unsigned", "unreadable", "other_schemes") if told[one]}
    finally:
        engine.delete_index(name)
    assert met == {"unsigned", "unreadable", "other_schemes"}
