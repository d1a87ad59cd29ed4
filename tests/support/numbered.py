"""Made-up pages with numbers of groups, and whether the numbers that documents have are right."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from support.hits import SCHEME, fingerprint_of
from support.random_pages import SPECS, alike

from shinglefold.contracts.engine import Engine
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings

#: Pages of the scheme; equal texts of different languages match.
USUAL = [number for number, spec in enumerate(SPECS) if spec.scheme == SCHEME.id]


def mappings() -> dict[str, Any]:
    """Mappings of an index that numbers groups."""
    made = recipe_mappings(replace(default_recipe(SCHEME), groups=True))
    made["properties"] |= {"host": {"type": "keyword"}, "published": {"type": "long"}}
    return made


def store(engine: Engine, index: str, numbers: Iterable[int], **groups: int) -> None:
    """Store pages, with numbers of groups where they are given by id."""
    actions = []
    for number in numbers:
        id_, spec = f"p{number}", SPECS[number]
        stored = fingerprint_of(spec).to_field()
        if id_ in groups:
            stored |= {"group": groups[id_], "leader": False}
        source = {"host": spec.host, "published": spec.published, "_dedup": stored}
        actions.append({"_index": index, "_id": id_, "_source": source})
    assert not engine.bulk(actions).failures
    engine.refresh(index)


def stored(engine: Engine, index: str) -> dict[int, Mapping[str, Any]]:
    """The fingerprint with its group, by the number of the page."""
    engine.refresh(index)
    hits = engine.search(index, {"query": {"match_all": {}}, "size": 5_000})["hits"]["hits"]
    return {int(hit["_id"][1:]): hit["_source"]["_dedup"] for hit in hits}


def groups_of(found: Mapping[int, Mapping[str, Any]]) -> dict[int, list[int]]:
    groups = defaultdict(list)
    for number, parts in found.items():
        if SPECS[number].scheme == SCHEME.id:
            groups[parts["group"]].append(number)
    return groups


def led_rightly(found: Mapping[int, Mapping[str, Any]]) -> bool:
    """Whether each group has one leader, which each member matches, and no two leaders match."""
    leads = []
    for members in groups_of(found).values():
        (leader,) = [number for number in members if found[number]["leader"]]
        leads.append(leader)
        if not all(member == leader or alike(member, leader) for member in members):
            return False
    return not any(alike(one, other) for one in leads for other in leads if one < other)


def connected_groups(numbers: Iterable[int]) -> set[frozenset[int]]:
    """What chains of pairs lead to, pair by pair."""
    left, found = set(numbers), set()
    while left:
        reached = {left.pop()}
        fresh = set(reached)
        while fresh:
            fresh = {other for one in fresh for other in left if alike(one, other)}
            left -= fresh
            reached |= fresh
        found.add(frozenset(reached))
    return found
