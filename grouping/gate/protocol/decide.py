"""Step 3 of the protocol: read again what was found, and decide about each document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.documents import put
from shinglefold.grouping.gate.protocol.intent_register import IntentRegister
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.pending_document import (
    DONE,
    Action,
    FindDocuments,
    FindGroups,
    GateFields,
    Now,
    PendingDocument,
    Put,
    ReadDocuments,
    Refresh,
    SearchHits,
    SimilarDocument,
    Similarity,
    Steps,
    Update,
    Write,
    guard_revocation,
)
from shinglefold.grouping.rules import Policy
from shinglefold.grouping.similarity import SimilarityModel
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.rerank.hits import stored_value
from shinglefold.rerank.request.fold_options import Scope
from shinglefold.rerank.similar import QueryDocument
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff


@dataclass(frozen=True, slots=True)
class DocumentJudge:
    """Compares pending documents with stored ones, and with the parts of documents that intents publish."""

    model: SimilarityModel

    def likenesses(self, pairs: Sequence[tuple[PendingDocument, Any]]) -> list[Similarity | None]:
        """Return the similarity of pending documents and stored sources; None if they do not match.

        The measure is symmetric.

        Cost: about 10 ns a pair, and some 200 µs for each text that is compared for the first time.
        """
        documents, hits, positions = _distinct(pairs)
        found = {
            (one, other): Similarity(likeness, similarity)
            for one, other, likeness, similarity in self.model.similar_pairs(
                self.model.batch(documents), hits
            )
        }
        return [found.get(position) for position in positions]

    @property
    def needs_texts(self) -> bool:
        """Whether ``stale`` needs texts that ``likenesses`` does not compare."""
        return self.model.tells_stale and not self.model.texts

    def stale(self, sources: Mapping[str, Any]) -> set[str]:
        """Return the ids of stored sources whose fingerprint was made of another text.

        Cost: some 100 µs for a text of usual length; a few µs if it was examined before.
        """
        return self.model.stale(sources)

    def possible(self, pairs: Sequence[tuple[PendingDocument, Any]]) -> list[bool]:
        """Return whether pending documents may match those of intents, by the parts that ``print`` returns.

        There are no false negatives. After a false positive, a writer waits and then compares the stored
        document. The gate of an intent may have another policy and publish fewer parts: a missing part may
        match.
        """
        completed = [(item, self._complete_parts(item, print_)) for item, print_ in pairs]
        documents, hits, positions = _distinct(completed)
        candidates = self.model.candidate_pairs(self.model.batch(documents), hits)
        found = {(pair.one, pair.other) for pair in candidates}
        return [position in found for position in positions]

    def _complete_parts(self, item: PendingDocument, print_: JSON) -> JSON:
        """Return the published parts of an intent; missing ones are taken from the pending document."""
        field, model = self.model.field, self.model
        own, published = stored_parts(item.document, field), stored_parts(print_, field)
        missing = [name for name in model.parts if name in own and name not in published]
        # A document without values publishes an empty list.
        unknown = [scope for scope in model.scopes if stored_value(print_, model.source_path(scope)) is None]
        if not missing and not unknown:
            return print_
        completed = put(print_, field, {**published, **{name: own[name] for name in missing}})
        for scope in unknown:
            completed = put(completed, model.source_path(scope), self._scope_values(item, scope))
        return completed

    def pairs(self, items: Sequence[PendingDocument]) -> list[tuple[int, int]]:
        """Return the pairs of pending documents that match, by position, the earlier one first."""
        batch = self.model.batch([item.print for item in items])
        return [(pair.one, pair.other) for pair in self.model.similar_within(batch)]

    def print(self, item: PendingDocument, /) -> JSON:
        """Return the parts of a pending document that other gates compare, in the form of a stored one."""
        field, model = self.model.field, self.model
        stored = stored_parts(item.document, field)
        parts = {name: stored[name] for name in ("lang", *model.parts) if name in stored}
        print_: JSON = put({}, field, parts)
        for scope in model.scopes:
            if not scope.field.startswith(f"{field}."):
                print_ = put(print_, model.source_path(scope), self._scope_values(item, scope))
        return print_

    @staticmethod
    def _scope_values(item: PendingDocument, scope: Scope) -> list[Any]:
        return list(item.print.values.get(scope.field, ()))


def _distinct(
    pairs: Sequence[tuple[PendingDocument, Any]],
) -> tuple[list[QueryDocument], list[JSON], list[tuple[int, int]]]:
    """Return distinct pending documents, distinct hits, and each pair as a position in either list."""
    items: dict[int, int] = {}
    sources: dict[int, int] = {}
    documents: list[QueryDocument] = []
    hits: list[JSON] = []
    positions: list[tuple[int, int]] = []
    for item, source in pairs:
        if (one := items.setdefault(id(item), len(documents))) == len(documents):
            documents.append(item.print)
        if (other := sources.setdefault(id(source), len(hits))) == len(hits):
            hits.append({"_source": source})
        positions.append((one, other))
    return documents, hits, positions


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a decision depends on.

    Attributes:
        groups: whether documents get the number of their group.
        lease: milliseconds after which others may clear an intent.
        max_wait: milliseconds after which a document gives up.
        first_reads: how many of the documents that a search found for a pending document are read first.
        retry: how often to begin again if the store is unavailable.
    """

    policy: Policy
    judge: DocumentJudge
    gate_fields: GateFields
    new_intent_id: Callable[[], str]
    register: IntentRegister
    groups: bool = True
    lease: int = 30_000
    max_wait: int = 90_000
    first_reads: int = 20
    retry: Backoff = DEFAULT_BACKOFF


def read_documents(ids: Iterable[str]) -> Steps[dict[str, VersionedDocument]]:
    """Read the newest version of documents, by id; deleted ones are missing."""
    wanted = tuple(sorted(set(ids)))
    if not wanted:
        return {}
    documents: list[VersionedDocument | None] = yield ReadDocuments(wanted)
    return {id_: held for id_, held in zip(wanted, documents, strict=True) if held is not None}


def find_stale(documents: Mapping[str, VersionedDocument], context: DecisionContext) -> Steps[set[str]]:
    """Return the ids of documents whose fingerprint was made of another text."""
    if documents and context.judge.needs_texts:
        whole: list[VersionedDocument | None] = yield ReadDocuments(tuple(sorted(documents)), whole=True)
        documents = {one.id: one for one in whole if one is not None}
    return context.judge.stale({id_: one.source for id_, one in documents.items()})


def read_again(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[int]:
    """Read again which intents are open and which found documents match; return the time before that."""
    now: int = yield Now()
    parts = [list(item.related_ids) + item.nominated[: context.first_reads] for item in items]
    held = yield from read_documents(id_ for part in parts for id_ in part)
    withdrawn = context.register.known.withdrawn
    intents = {
        intent.intent_id: intent
        for item in items
        for intent in item.intents
        if intent.intent_id not in withdrawn
    }
    if dead := [
        intent
        for intent in intents.values()
        if intent.until < now and intent.is_open(held.get(intent.document), context.gate_fields)
    ]:
        yield from _revoke_guards(dead, held, context.gate_fields)
    for item in items:
        item.open_intents = [
            intent
            for intent in item.intents
            if intent.intent_id not in withdrawn
            and intent.is_open(held.get(intent.document), context.gate_fields)
        ]
        item.likes, item.stale = [], set()
    yield from _compare(items, parts, held, context)
    rest = [
        [id_ for id_ in item.nominated[context.first_reads :] if id_ not in item.related_ids]
        for item in items
    ]
    yield from _read_on(items, rest, context)
    undecided = [item for item in items if item.search_hits.truncated and _is_undecided(item, context)]
    if undecided:
        yield from _read_on(undecided, (yield from _search_deep(undecided)), context)
    return now


def _read_on(
    items: Sequence[PendingDocument], rest: list[list[str]], context: DecisionContext
) -> Steps[None]:
    """Read more of the found documents, until the pending ones can be decided or all found ones were read."""
    while any(parts := [_further(item, ids, context) for item, ids in zip(items, rest, strict=True)]):
        rest = [[id_ for id_ in ids if id_ not in set(part)] for ids, part in zip(rest, parts, strict=True)]
        held = yield from read_documents(id_ for part in parts for id_ in part)
        yield from _compare(items, parts, held, context)


def _search_deep(items: Sequence[PendingDocument]) -> Steps[list[list[str]]]:
    """Search more candidates than the first search returned; return the new ids for each document."""
    found: list[SearchHits] = yield FindDocuments(tuple(items), deep=True)
    new: list[list[str]] = []
    for item, hits in zip(items, found, strict=True):
        known = {*item.related_ids, *item.nominated}
        new.append([id_ for id_ in hits.ids if id_ not in known])
        item.nominated += new[-1]
        item.search_hits = replace(item.search_hits, ids=hits.ids, ungrouped=hits.ungrouped, truncated=False)
    return new


def _is_undecided(item: PendingDocument, context: DecisionContext) -> bool:
    """Return whether further documents may decide about a pending document."""
    policy = context.policy
    if item.kept is not None:
        return False
    if policy.action == "refuse":
        return not item.likes
    if not any(like.leads for like in item.likes):
        return True
    ungrouped = sum(like.group is None for like in item.likes)
    return item.search_hits.ungrouped_beyond and ungrouped < policy.most


def _compare(
    items: Sequence[PendingDocument],
    parts: Sequence[Sequence[str]],
    held: Mapping[str, VersionedDocument],
    context: DecisionContext,
) -> Steps[None]:
    """Add the documents that match each pending document to its ``likes``, stale ones to ``stale``.

    Args:
        parts: for each pending document, the ids of the documents to compare.
    """
    pairs = [
        (item, held[id_])
        for item, part in zip(items, parts, strict=True)
        for id_ in sorted(set(part))
        if id_ in held and id_ != item.id
    ]
    similarities = context.judge.likenesses([(item, stored.source) for item, stored in pairs])
    alike = {stored.id for (_, stored), found in zip(pairs, similarities, strict=True) if found is not None}
    stale = yield from find_stale({id_: held[id_] for id_ in alike}, context)
    for (item, stored), found in zip(pairs, similarities, strict=True):
        if found is not None and stored.id in stale:
            item.stale.add(stored.id)
        elif found is not None:
            group = context.gate_fields.group(stored.source)
            leads = context.gate_fields.leads(stored.source)
            item.likes.append(
                SimilarDocument(stored.id, found.likeness, stored.guard, group, leads, found.similarity)
            )


def _further(item: PendingDocument, rest: list[str], context: DecisionContext) -> list[str]:
    """Return the ids to read before a document can be decided; mostly none.

    A few of thousands of copies are enough to decide. If a document was changed or deleted since the search,
    more are read, until one decides or all were read.
    """
    policy = context.policy
    if item.kept is not None:
        return []
    if not (item.likes if policy.action == "refuse" else any(like.leads for like in item.likes)):
        return rest[: max(context.first_reads, 3 * (len(item.nominated) - len(rest)))]
    if policy.action != "cap":
        return []
    # Documents without a number count towards the limit, too.
    missing = policy.most - sum(like.group is None for like in item.likes)
    grouped = set(item.search_hits.ids) - item.search_hits.ungrouped
    return [id_ for id_ in rest if id_ not in grouped][: max(0, missing)]


def _revoke_guards(
    dead: Sequence[Intent], held: dict[str, VersionedDocument], gate_fields: GateFields
) -> Steps[None]:
    """Revoke the guards of open intents, and read their documents again into ``held``."""
    ids = sorted({intent.document for intent in dead})
    yield Write(tuple(guard_revocation(held[id_], gate_fields) for id_ in ids))
    for id_ in ids:
        del held[id_]
    held |= yield from read_documents(ids)


class Stay(Enum):
    """The document is not decided now."""

    WAIT = "it goes first, and waits until the others have withdrawn or are decided"
    WITHDRAW = "another goes first: it withdraws its intent and begins again"


@dataclass(frozen=True, slots=True)
class Refuse:
    """The document resembles a stored one; under ``cap`` its group is full."""

    like: SimilarDocument


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """The document joins a group, or claims one of its free slots."""

    group: int
    like: SimilarDocument | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """The document resembles stored ones without a leader or without a group; the most similar first."""

    likes: tuple[SimilarDocument, ...]


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """The document resembles no other: it founds a new group."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The document is stored already with the same text: its group stays, as others may have joined it."""

    group: int | None
    leads: bool


Choice = Refuse | JoinGroup | Adopt | FoundGroup | Keep | Stay


def choose(item: PendingDocument, policy: Policy) -> Choice:
    """Return what to do with a document.

    A matching stored document decides at once. Without one, an open intent of a matching document makes the
    document wait or withdraw.
    """
    if item.kept is not None:
        return Keep(*item.kept)
    likes = sorted(item.likes, key=lambda like: (-like.likeness, like.id))
    if policy.action == "refuse" and likes:
        return Refuse(likes[0])
    for like in likes:
        if like.leads and like.group is not None:
            return JoinGroup(like.group, like)
    if stay := wait_or_withdraw(item, item.open_intents):
        return stay
    return Adopt(tuple(likes)) if likes else FoundGroup()


def wait_or_withdraw(item: PendingDocument, others: Sequence[Intent]) -> Stay | None:
    """Return whether a document waits or withdraws while matching intents are open; None if none is."""
    if any(other.order < item.order for other in others):
        return Stay.WITHDRAW
    return Stay.WAIT if others or item.earlier_duplicates else None


def choices_of(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[list[Choice]]:
    """Return what to do with documents; read their groups if the choice depends on them."""
    choices: list[Choice] = []
    for item in items:
        choice = choose(item, context.policy)
        if isinstance(choice, Adopt):
            choice = yield from _adopt(item, choice, context)
        choices.append(choice)
    return choices


def _adopt(item: PendingDocument, choice: Adopt, context: DecisionContext) -> Steps[Choice]:
    """Give the first group without a leader its most similar document as the leader, and join it.

    If every group has a leader, the most similar document without a number leads a new group.
    """
    yield Refresh()
    groups = dict.fromkeys(like.group for like in choice.likes if like.group is not None)
    for group in groups:
        (found,) = yield FindGroups((group,), 10, leaders=True)
        held = yield from read_documents(found)
        # A document that is being changed does not lead its old group any more.
        own = held.pop(item.id, None)
        if own is not None and own.guard != item.guard:
            # Another writer has made it a leader meanwhile.
            return Stay.WITHDRAW
        sources, fields = [one.source for one in held.values()], context.gate_fields
        if any(fields.leads(one) and fields.group(one) == group for one in sources):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        return (yield from _make_leader(heir, group, context))
    for heir in choice.likes:
        if heir.group is None:
            return (yield from _make_leader(heir, item.number, context))
    return FoundGroup()


def _make_leader(heir: SimilarDocument, group: int, context: DecisionContext) -> Steps[Choice]:
    """Make a stored document the leader and join its group; wait if the document has changed since."""
    held: VersionedDocument | None
    (held,) = yield ReadDocuments((heir.id,), whole=True)
    if held is None or held.guard != heir.guard:
        return Stay.WAIT
    (written,) = yield Write((_leader_action(held, group, context.gate_fields),))
    return JoinGroup(group, heir) if written.status == DONE else Stay.WAIT


def _leader_action(held: VersionedDocument, group: int, gate_fields: GateFields) -> Action:
    if gate_fields.has_other_form(held.source):
        whole = gate_fields.add_group(held.source, group, leads=True)
        return Put("documents", held.id, whole, held.guard, skip_pipeline=True)
    return Update("documents", held.id, gate_fields.leader(group), held.guard)
