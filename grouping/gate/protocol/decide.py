"""Step 3 of the protocol: read again what was found, and decide about each document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.documents import put
from shinglefold.grouping.gate.protocol.intent_register import IntentRegister
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import (
    DONE,
    Action,
    FindDocuments,
    FindGroups,
    GateFields,
    Member,
    Now,
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
    """Compares members with stored documents, and with the parts of documents that intents publish."""

    model: SimilarityModel

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Similarity | None]:
        """Return the similarity of members and stored sources; None if they do not match.

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

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members may match the documents of intents, by the parts that ``print`` returns.

        There are no false negatives. After a false positive, a writer waits and then compares the stored
        document. The gate of an intent may have another policy and publish fewer parts: a missing part may
        match.
        """
        completed = [(member, self._complete_parts(member, print_)) for member, print_ in pairs]
        documents, hits, positions = _distinct(completed)
        candidates = self.model.candidate_pairs(self.model.batch(documents), hits)
        found = {(pair.one, pair.other) for pair in candidates}
        return [position in found for position in positions]

    def _complete_parts(self, member: Member, print_: JSON) -> JSON:
        """Return the published parts of an intent; missing ones are taken from the member."""
        field, model = self.model.field, self.model
        own, published = stored_parts(member.document, field), stored_parts(print_, field)
        missing = [name for name in model.parts if name in own and name not in published]
        # A document without values publishes an empty list.
        unknown = [scope for scope in model.scopes if stored_value(print_, model.source_path(scope)) is None]
        if not missing and not unknown:
            return print_
        completed = put(print_, field, {**published, **{name: own[name] for name in missing}})
        for scope in unknown:
            completed = put(completed, model.source_path(scope), self._scope_values(member, scope))
        return completed

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        """Return the pairs of members that match, by position, the earlier one first."""
        batch = self.model.batch([member.print for member in members])
        return [(pair.one, pair.other) for pair in self.model.similar_within(batch)]

    def print(self, member: Member, /) -> JSON:
        """Return the parts of a member that other gates compare, in the form of a stored document."""
        field, model = self.model.field, self.model
        stored = stored_parts(member.document, field)
        parts = {name: stored[name] for name in ("lang", *model.parts) if name in stored}
        print_: JSON = put({}, field, parts)
        for scope in model.scopes:
            if not scope.field.startswith(f"{field}."):
                print_ = put(print_, model.source_path(scope), self._scope_values(member, scope))
        return print_

    @staticmethod
    def _scope_values(member: Member, scope: Scope) -> list[Any]:
        return list(member.print.values.get(scope.field, ()))


def _distinct(
    pairs: Sequence[tuple[Member, Any]],
) -> tuple[list[QueryDocument], list[JSON], list[tuple[int, int]]]:
    """Return distinct members, distinct hits, and each pair as a position in either list."""
    members: dict[int, int] = {}
    sources: dict[int, int] = {}
    documents: list[QueryDocument] = []
    hits: list[JSON] = []
    positions: list[tuple[int, int]] = []
    for member, source in pairs:
        if (one := members.setdefault(id(member), len(documents))) == len(documents):
            documents.append(member.print)
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
        max_wait: milliseconds after which a member gives up.
        first_reads: how many of the documents that a search found for a member are read first.
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


def read_again(members: Sequence[Member], context: DecisionContext) -> Steps[int]:
    """Read again which intents are open and which found documents match; return the time before that."""
    now: int = yield Now()
    parts = [list(member.related_ids) + member.nominated[: context.first_reads] for member in members]
    held = yield from read_documents(id_ for part in parts for id_ in part)
    withdrawn = context.register.known.withdrawn
    intents = {
        intent.intent_id: intent
        for member in members
        for intent in member.intents
        if intent.intent_id not in withdrawn
    }
    if dead := [
        intent
        for intent in intents.values()
        if intent.until < now and intent.is_open(held.get(intent.document), context.gate_fields)
    ]:
        yield from _revoke_guards(dead, held, context.gate_fields)
    for member in members:
        member.pending = [
            intent
            for intent in member.intents
            if intent.intent_id not in withdrawn
            and intent.is_open(held.get(intent.document), context.gate_fields)
        ]
        member.likes, member.stale = [], set()
    yield from _compare(members, parts, held, context)
    rest = [
        [id_ for id_ in member.nominated[context.first_reads :] if id_ not in member.related_ids]
        for member in members
    ]
    yield from _read_on(members, rest, context)
    undecided = [
        member for member in members if member.search_hits.truncated and _is_undecided(member, context)
    ]
    if undecided:
        yield from _read_on(undecided, (yield from _search_deep(undecided)), context)
    return now


def _read_on(members: Sequence[Member], rest: list[list[str]], context: DecisionContext) -> Steps[None]:
    """Read more of the found documents, until members can be decided or all documents were read."""
    while any(parts := [_further(member, ids, context) for member, ids in zip(members, rest, strict=True)]):
        rest = [[id_ for id_ in ids if id_ not in set(part)] for ids, part in zip(rest, parts, strict=True)]
        held = yield from read_documents(id_ for part in parts for id_ in part)
        yield from _compare(members, parts, held, context)


def _search_deep(members: Sequence[Member]) -> Steps[list[list[str]]]:
    """Search more candidates than the first search returned; return the new ids for each member."""
    found: list[SearchHits] = yield FindDocuments(tuple(members), deep=True)
    new: list[list[str]] = []
    for member, hits in zip(members, found, strict=True):
        known = {*member.related_ids, *member.nominated}
        new.append([id_ for id_ in hits.ids if id_ not in known])
        member.nominated += new[-1]
        member.search_hits = replace(
            member.search_hits, ids=hits.ids, ungrouped=hits.ungrouped, truncated=False
        )
    return new


def _is_undecided(member: Member, context: DecisionContext) -> bool:
    """Return whether further documents may decide about a member."""
    policy = context.policy
    if member.kept is not None:
        return False
    if policy.action == "refuse":
        return not member.likes
    if not any(like.leads for like in member.likes):
        return True
    ungrouped = sum(like.group is None for like in member.likes)
    return member.search_hits.ungrouped_beyond and ungrouped < policy.most


def _compare(
    members: Sequence[Member],
    parts: Sequence[Sequence[str]],
    held: Mapping[str, VersionedDocument],
    context: DecisionContext,
) -> Steps[None]:
    """Add the documents that match each member to its ``likes``, stale ones to ``stale``.

    Args:
        parts: for each member, the ids of the documents to compare.
    """
    pairs = [
        (member, held[id_])
        for member, part in zip(members, parts, strict=True)
        for id_ in sorted(set(part))
        if id_ in held and id_ != member.id
    ]
    similarities = context.judge.likenesses([(member, stored.source) for member, stored in pairs])
    alike = {stored.id for (_, stored), found in zip(pairs, similarities, strict=True) if found is not None}
    stale = yield from find_stale({id_: held[id_] for id_ in alike}, context)
    for (member, stored), found in zip(pairs, similarities, strict=True):
        if found is not None and stored.id in stale:
            member.stale.add(stored.id)
        elif found is not None:
            group = context.gate_fields.group(stored.source)
            leads = context.gate_fields.leads(stored.source)
            member.likes.append(
                SimilarDocument(stored.id, found.likeness, stored.guard, group, leads, found.similarity)
            )


def _further(member: Member, rest: list[str], context: DecisionContext) -> list[str]:
    """Return the ids to read before a member can be decided; mostly none.

    A few of thousands of copies are enough to decide. If a document was changed or deleted since the search,
    more are read, until one decides or all were read.
    """
    policy = context.policy
    if member.kept is not None:
        return []
    if not (member.likes if policy.action == "refuse" else any(like.leads for like in member.likes)):
        return rest[: max(context.first_reads, 3 * (len(member.nominated) - len(rest)))]
    if policy.action != "cap":
        return []
    # Documents without a number count towards the limit, too.
    missing = policy.most - sum(like.group is None for like in member.likes)
    grouped = set(member.search_hits.ids) - member.search_hits.ungrouped
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
    """The member is not decided now."""

    WAIT = "it goes first, and waits until the others have withdrawn or are decided"
    WITHDRAW = "another goes first: it withdraws its intent and begins again"


@dataclass(frozen=True, slots=True)
class Refuse:
    """The member resembles a stored document; under ``cap`` its group is full."""

    like: SimilarDocument


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """The member joins a group, or claims one of its free slots."""

    group: int
    like: SimilarDocument | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """The member resembles documents without a leader or without a group; the most similar first."""

    likes: tuple[SimilarDocument, ...]


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """The member resembles no document: it founds a new group."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The member is stored already with the same text: its group stays, because others may have joined it."""

    group: int | None
    leads: bool


Choice = Refuse | JoinGroup | Adopt | FoundGroup | Keep | Stay


def choose(member: Member, policy: Policy) -> Choice:
    """Return what to do with a member.

    A matching stored document decides at once. Without one, an open intent of a matching document makes the
    member wait or withdraw.
    """
    if member.kept is not None:
        return Keep(*member.kept)
    likes = sorted(member.likes, key=lambda like: (-like.likeness, like.id))
    if policy.action == "refuse" and likes:
        return Refuse(likes[0])
    for like in likes:
        if like.leads and like.group is not None:
            return JoinGroup(like.group, like)
    if stay := wait_or_withdraw(member, member.pending):
        return stay
    return Adopt(tuple(likes)) if likes else FoundGroup()


def wait_or_withdraw(member: Member, others: Sequence[Intent]) -> Stay | None:
    """Return whether a member waits or withdraws while matching intents are open; None if none is."""
    if any(other.order < member.order for other in others):
        return Stay.WITHDRAW
    return Stay.WAIT if others or member.earlier_duplicates else None


def choices_of(members: Sequence[Member], context: DecisionContext) -> Steps[list[Choice]]:
    """Return what to do with members; read their groups if the choice depends on them."""
    choices: list[Choice] = []
    for member in members:
        choice = choose(member, context.policy)
        if isinstance(choice, Adopt):
            choice = yield from _adopt(member, choice, context)
        choices.append(choice)
    return choices


def _adopt(member: Member, choice: Adopt, context: DecisionContext) -> Steps[Choice]:
    """Give the first group without a leader its most similar document as the leader, and join it.

    If every group has a leader, the most similar document without a number leads a new group.
    """
    yield Refresh()
    groups = dict.fromkeys(like.group for like in choice.likes if like.group is not None)
    for group in groups:
        (found,) = yield FindGroups((group,), 10, leaders=True)
        held = yield from read_documents(found)
        # A document that is being changed does not lead its old group any more.
        own = held.pop(member.id, None)
        if own is not None and own.guard != member.guard:
            # Another writer has made it a leader meanwhile.
            return Stay.WITHDRAW
        sources, fields = [one.source for one in held.values()], context.gate_fields
        if any(fields.leads(one) and fields.group(one) == group for one in sources):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        return (yield from _make_leader(heir, group, context))
    for heir in choice.likes:
        if heir.group is None:
            return (yield from _make_leader(heir, member.number, context))
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
