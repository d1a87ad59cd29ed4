"""Compares documents on their way through a gate, by their fingerprints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.groups.gate.protocol.member import Alike, Member
from shinglefold.groups.similarity import Likeness
from shinglefold.ingest.field_paths import put
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.rerank.hits import stored_value
from shinglefold.rerank.similar import QueryDocument

_LANGUAGE = "lang"


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The judge of real documents."""

    likeness_of: Likeness

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Alike | None]:
        """Return how alike members and stored sources are, None where they do not match.

        Cost: about 10 ns a combination, and some 200 µs for each text that is asked for the first time.
        """
        asked, hits, places = _distinct(pairs)
        found = {
            (one, other): Alike(likeness, similarity)
            for one, other, likeness, similarity in self.likeness_of.likened(
                self.likeness_of.batch(asked), hits
            )
        }
        return [found.get(place) for place in places]

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members and what others are decided by may match, as far as that tells.

        A gate of another policy may leave out what this one goes by. Then they may: documents have it.
        """
        asked, hits, places = _distinct([(member, self._filled(member, told)) for member, told in pairs])
        batch = self.likeness_of.batch(asked)
        found = {(pair.one, pair.other) for pair in self.likeness_of.possible(batch, hits)}
        return [place in found for place in places]

    def _filled(self, member: Member, told: JSON) -> JSON:
        """Return what another is decided by, with what it leaves out as the member has it."""
        field, likeness = self.likeness_of.field, self.likeness_of
        own = stored_parts(member.document, field)
        there = stored_parts(told, field)
        left = [name for name in likeness.parts if name in own and name not in there]
        # Of a document without values a gate that goes by them tells so.
        unknown = [one for one in likeness.scopes if stored_value(told, likeness.told_in(one)) is None]
        if not left and not unknown:
            return told
        told = put(told, field, {**there, **{name: own[name] for name in left}})
        for one in unknown:
            told = put(told, likeness.told_in(one), list(member.print.values.get(one.field, ())))
        return told

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        """Return the pairs of members that match, by their places, the earlier one first."""
        batch = self.likeness_of.batch([one.print for one in members])
        return [(pair.one, pair.other) for pair in self.likeness_of.among(batch)]

    def print(self, member: Member, /) -> JSON:
        """Return what others compare a member by, as a stored document has it."""
        field, likeness = self.likeness_of.field, self.likeness_of
        parts = stored_parts(member.document, field)
        told: JSON = put(
            {}, field, {name: parts[name] for name in (_LANGUAGE, *likeness.parts) if name in parts}
        )
        for one in likeness.scopes:
            if not one.field.startswith(f"{field}."):
                told = put(told, likeness.told_in(one), list(member.print.values.get(one.field, ())))
        return told


def _distinct(
    pairs: Sequence[tuple[Member, Any]],
) -> tuple[list[QueryDocument], list[JSON], list[tuple[int, int]]]:
    """Return what is asked for and the hits it is held against, each once, and of each pair their places."""
    members: dict[int, int] = {}
    sources: dict[int, int] = {}
    asked: list[QueryDocument] = []
    hits: list[JSON] = []
    places: list[tuple[int, int]] = []
    for member, source in pairs:
        if (one := members.setdefault(id(member), len(asked))) == len(asked):
            asked.append(member.print)
        if (other := sources.setdefault(id(source), len(hits))) == len(hits):
            hits.append({"_source": source})
        places.append((one, other))
    return asked, hits, places


def words_of(asked: QueryDocument) -> tuple[str, ...]:
    """Return what documents that match have one of in common: a supershingle, or the whole text."""
    text = asked.print.digest
    return (*asked.print.supershingles, *((f"#{text}",) if text else ()))
