"""The limit of the policy ``cap``: whether groups have room for the documents that would join them.

A batch publishes first which groups it wants to join, and counts their documents after that.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.grouping.gate.protocol.decide import (
    Choice,
    DecisionContext,
    JoinGroup,
    Refuse,
    Stay,
    find_stale,
    read_documents,
)
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.pending_document import (
    CountGroups,
    FindGroups,
    Now,
    PendingDocument,
    Steps,
    Write,
    guard_revocation,
)

_ALL = 9_999
#: If a group may have at most this many documents, they are read at once instead of counted first.
_FEW = 50


def limit_groups(
    items: Sequence[PendingDocument], choices: Sequence[Choice], context: DecisionContext
) -> Steps[list[Choice]]:
    """Return the choices; replace joining a group that is or may become full by a refusal or ``Stay``."""
    joining = {position: choice for position, choice in enumerate(choices) if isinstance(choice, JoinGroup)}
    if not joining:
        return list(choices)
    wanted = [(items[position], choice.group) for position, choice in joining.items()]
    yield from _claim(wanted, context)
    groups = tuple(sorted({choice.group for choice in joining.values()}))
    own = {item.intent_id for item in items}
    claims = {
        group: [one for one in context.register.known.with_claims_on(group) if one.intent_id not in own]
        for group in groups
    }
    demand = _demand(wanted, claims)
    roomy = yield from _roomy(demand, context)
    joining = {position: choice for position, choice in joining.items() if choice.group not in roomy}
    if not joining:
        return list(choices)
    groups = tuple(group for group in groups if group not in roomy)
    further = {choice.like.id for choice in joining.values() if choice.like is not None}
    further |= {intent.document for intents in claims.values() for intent in intents}
    held, stale = yield from _read_groups(groups, further, demand, context)
    now = yield Now()
    withdrawn = context.register.known.withdrawn
    open_ = {
        group: [
            intent
            for intent in intents
            if intent.intent_id not in withdrawn
            and intent.is_open(held.get(intent.document), context.gate_fields)
        ]
        for group, intents in claims.items()
    }
    dead = {intent.document for intents in open_.values() for intent in intents if intent.until < now}
    if dead:
        yield Write(tuple(guard_revocation(held[id_], context.gate_fields) for id_ in sorted(dead)))
    sizes = _GroupSizes(held, stale, context)
    limited = list(choices)
    for position, choice in joining.items():
        items[position].stale |= {
            id_ for id_ in stale if context.gate_fields.group(held[id_].source) == choice.group
        }
        intents = open_[choice.group]
        if any(intent.document in dead for intent in intents):
            limited[position] = Stay.WAIT
        else:
            limited[position] = sizes.join(items[position], choice, intents)
    return limited


def _claim(wanted: Sequence[tuple[PendingDocument, int]], context: DecisionContext) -> Steps[None]:
    new = [(item.intent_id, group) for item, group in wanted if item.claim != group]
    for item, group in wanted:
        item.claim = group
    if new:
        yield from context.register.claim(new)
    yield from context.register.look()


def _demand(
    wanted: Sequence[tuple[PendingDocument, int]], claims: Mapping[int, Sequence[Intent]]
) -> dict[int, int]:
    """Return how many places of each group may be taken, besides those of documents with its number."""
    ungrouped = Counter[int]()
    for item, group in wanted:
        ungrouped[group] = max(ungrouped[group], sum(like.group is None for like in item.likes))
    joining = Counter(group for _, group in wanted)
    return {group: count + len(claims[group]) + ungrouped[group] for group, count in joining.items()}


def _roomy(demand: Mapping[int, int], context: DecisionContext) -> Steps[set[int]]:
    """Return the groups with room for all that join, even if every document that searches see exists.

    A document that searches don't see yet has a claim, which is known until they see it. Only the leader has
    none, so one place is kept for it. Groups that may have few documents are read instead of counted.
    """
    limit = context.policy.most
    if limit <= _FEW:
        return set()
    groups = tuple(demand)
    sizes: list[int] = yield CountGroups(groups, limit)
    return {group for group, size in zip(groups, sizes, strict=True) if size + demand[group] < limit}


def _read_groups(
    groups: tuple[int, ...], further: set[str], demand: Mapping[int, int], context: DecisionContext
) -> Steps[tuple[dict[str, VersionedDocument], set[str]]]:
    """Read the documents that decide whether groups are full, and some further documents.

    Returns:
        The documents, and the ids of stale documents in groups that these would fill.
    """
    limit = context.policy.most
    held: dict[str, VersionedDocument] = {}
    stale: set[str] = set()
    # Some documents may have left since searches saw them, or be stale: if these matter, read all.
    for size in (limit + 1, _ALL):
        found: list[Sequence[str]] = yield FindGroups(groups, size)
        held |= yield from read_documents(further.union(*found) - held.keys())
        stale = yield from _stale_in_groups(held, demand, context)
        sizes = Counter(context.gate_fields.group(held[id_].source) for id_ in held.keys() - stale)
        read = zip(groups, found, strict=True)
        groups = tuple(group for group, ids in read if len(ids) == size and sizes[group] <= limit)
        if not groups:
            break
    return held, stale


def _stale_in_groups(
    held: Mapping[str, VersionedDocument], demand: Mapping[int, int], context: DecisionContext
) -> Steps[set[str]]:
    """Return the ids of stale documents of the groups that have no room for all if these count, too.

    Cost: see ``DocumentJudge.stale``, for each document of such a group.
    """
    groups = {id_: context.gate_fields.group(one.source) for id_, one in held.items()}
    sizes = Counter(groups.values())
    full = {group for group, count in demand.items() if sizes[group] + count > context.policy.most}
    documents = {id_: held[id_] for id_, group in groups.items() if group in full}
    return (yield from find_stale(documents, context))


class _GroupSizes:
    """How many documents groups have, earlier ones of the batch included and stale ones not."""

    def __init__(
        self, held: Mapping[str, VersionedDocument], stale: set[str], context: DecisionContext
    ) -> None:
        self._groups = {
            id_: context.gate_fields.group(one.source) for id_, one in held.items() if id_ not in stale
        }
        self._sizes = Counter(self._groups.values())
        self._limit = context.policy.most

    def join(self, item: PendingDocument, choice: JoinGroup, claims: Sequence[Intent]) -> Choice:
        """Return a document's choice, a refusal if the group is full, or whether it waits or withdraws."""
        own = self._groups.get(item.id) == choice.group
        # Documents without a number were written without a gate; they are copies, too, so they count.
        ungrouped = sum(like.group is None for like in item.likes if like.id not in self._groups)
        place = place_in_group(item, self._sizes[choice.group] - own + ungrouped, claims, self._limit)
        if isinstance(place, Stay):
            return place
        if place:
            self._sizes[choice.group] += not own
            return choice
        assert choice.like is not None
        return Refuse(choice.like)


def place_in_group(item: PendingDocument, size: int, claims: Sequence[Intent], limit: int) -> Stay | bool:
    """Return whether a group has a free slot for a document.

    Args:
        size: how many documents the group has.
        claims: open intents of others that claim a slot.
        limit: how many documents the group may have.

    Returns:
        True or False, or whether to wait or withdraw while that depends on the others.
    """
    if size >= limit:
        return False
    if size + len(claims) < limit:
        return True
    return Stay.WITHDRAW if any(other.order < item.order for other in claims) else Stay.WAIT
