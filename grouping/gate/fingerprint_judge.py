"""The judge of a gate: compares documents by fingerprints and, where these leave doubt, by texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.grouping.gate.protocol.member import Alike, Member
from shinglefold.grouping.similarity import Likeness
from shinglefold.ingest.field_paths import put
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.rerank.hits import stored_value
from shinglefold.rerank.similar import QueryDocument

_LANGUAGE = "lang"


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Compares members with stored documents and with the prints of intents."""

    likeness_of: Likeness

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Alike | None]:
        """Return how alike members and stored sources are; None where they do not match.

        Cost: about 10 ns a pair, and some 200 µs for each text that is compared for the first time.
        """
        asked, hits, places = _distinct(pairs)
        found = {
            (one, other): Alike(likeness, similarity)
            for one, other, likeness, similarity in self.likeness_of.similar_pairs(
                self.likeness_of.batch(asked), hits
            )
        }
        return [found.get(place) for place in places]

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members and the prints of intents may match.

        A gate with another policy may leave parts out of its prints. Then they may match: the document has
        them.
        """
        asked, hits, places = _distinct([(member, self._filled(member, told)) for member, told in pairs])
        batch = self.likeness_of.batch(asked)
        found = {(pair.one, pair.other) for pair in self.likeness_of.possible(batch, hits)}
        return [place in found for place in places]

    def _filled(self, member: Member, told: JSON) -> JSON:
        """Return the print of an intent, its missing parts taken from the member."""
        field, likeness = self.likeness_of.field, self.likeness_of
        own = stored_parts(member.document, field)
        there = stored_parts(told, field)
        left = [name for name in likeness.parts if name in own and name not in there]
        # A print says so where its document has no values.
        unknown = [one for one in likeness.scopes if stored_value(told, likeness.told_in(one)) is None]
        if not left and not unknown:
            return told
        told = put(told, field, {**there, **{name: own[name] for name in left}})
        for one in unknown:
            told = put(told, likeness.told_in(one), list(member.print.values.get(one.field, ())))
        return told

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        """Return the pairs of members that match, by position, the earlier one first."""
        batch = self.likeness_of.batch([one.print for one in members])
        return [(pair.one, pair.other) for pair in self.likeness_of.among(batch)]

    def print(self, member: Member, /) -> JSON:
        """Return the parts of a member that others compare, in the form of a stored document."""
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
    """Return the members and the hits of pairs, each once, and the positions of both for each pair."""
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


def match_keys_of(asked: QueryDocument) -> tuple[str, ...]:
    """Return the keys of which two documents that match have one in common: supershingles and text digest."""
    text = asked.print.digest
    return (*asked.print.supershingles, *((f"#{text}",) if text else ()))
