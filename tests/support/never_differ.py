"""Cards of a shop that differ in a number or a colour, and the ways by which documents are compared."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.hits import groups

import shinglefold
from shinglefold.grouping.regroup import regroup
from shinglefold.rerank import collapse

CARD = (
    "Мужские кроссовки Волна Стиль, размер {}, цвет чёрный, верх из дышащей сетки, подошва из полимера, для "
    "бега и прогулок, в комплекте запасные шнурки и мешок для обуви"
)
DOCUMENTS = [
    {"id": "a", "body": CARD.format(42), "colour": "Чёрный", "rank": 1},
    {"id": "b", "body": CARD.format(43), "colour": "чёрный", "rank": 2},
    {"id": "c", "body": CARD.format("42 "), "colour": " чёрный", "rank": 3},
    {"id": "d", "body": CARD.format("42 "), "colour": "белый", "rank": 4},
]
#: What never differs, and which documents may be in one group.
WANTED = {
    (): {frozenset("abcd")},
    ("numbers",): {frozenset("acd"), frozenset("b")},
    ("colour",): {frozenset("abc"), frozenset("d")},
    ("colour", "numbers"): {frozenset("ac"), frozenset("b"), frozenset("d")},
}
ALL = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 10}


def groups_of_page(page: dict[str, Any]) -> set[frozenset[str]]:
    return set(map(frozenset, groups(page)))


def by_window(index: shinglefold.FoldedIndex, options: dict[str, Any]) -> set[frozenset[str]]:
    page = index.search({**ALL, "ext": {"dedup": options}})
    assert page["dedup"]["mode"] == options.get("mode", "window")
    return groups_of_page(page)


def _by_similar(index: shinglefold.FoldedIndex, _: object) -> set[frozenset[str]]:
    return {frozenset([one, *(found.id for found in index.similar(one).matches)]) for one in "abcd"}


def _by_collapse(index: shinglefold.FoldedIndex, _: object) -> set[frozenset[str]]:
    body = {**ALL, "docvalue_fields": ["_dedup.digest", "_dedup.signature"]}
    hits = index.engine.search(index.name, body)["hits"]["hits"]
    found = collapse(hits, index.recipe.scheme)
    return {frozenset(hits[at]["_id"] for at in group.members) for group in found.groups}


#: Ways that compare documents of one index.
WAYS: dict[str, tuple[Callable[..., set[frozenset[str]]], dict[str, Any]]] = {
    "window": (by_window, {}),
    "window by text": (by_window, {"verify": "text"}),
    "connected": (by_window, {"linkage": "connected"}),
    "policy": (by_window, {"representative": "prefer:colour=белый"}),
    "keywords": (by_window, {"min_resemblance": 0, "min_shared": 1}),
    "native": (by_window, {"mode": "native"}),
    "similar": (_by_similar, {}),
    "collapse": (_by_collapse, {}),
}


@contextmanager
def cards(target: str | Path, name: str, never_differ: list[str]) -> Iterator[shinglefold.FoldedIndex]:
    """The cards in an index where some facts never differ."""
    types = {"colour": {"type": "keyword"}, "rank": {"type": "integer"}}
    made = {"text": ["body"], "languages": ["ru"], "groups": True, "properties": types}
    shinglefold.setup(target, name, never_differ=never_differ, **made)
    with shinglefold.open(target, name, never_differ=never_differ) as index:
        index.index(DOCUMENTS)
        yield index


def check_the_gate(index: shinglefold.FoldedIndex, names: Sequence[str]) -> None:
    """The gate refuses copies, and lets a card in whose number is new."""
    *told, fresh = index.gate.add_all(
        [
            *({**one, "id": f"{one['id']}2"} for one in DOCUMENTS),
            {"id": "e", "body": CARD.format(44), "colour": "чёрный", "rank": 9},
        ]
    )
    assert {verdict.status for verdict in told} == {"refused"}
    assert fresh.status == ("accepted" if "numbers" in names else "refused")


def groups_made_anew(index: shinglefold.FoldedIndex) -> set[frozenset[str]]:
    regroup(index.engine, index.name)
    groups: dict[int, set[str]] = {}
    hits = index.engine.search(index.name, {"size": 20, "query": {"terms": {"id": list("abcd")}}})["hits"][
        "hits"
    ]
    for hit in hits:
        groups.setdefault(hit["_source"]["_dedup"]["group"], set()).add(hit["_id"])
    return set(map(frozenset, groups.values()))
