"""Compares documents on their way through a gate, by their fingerprints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.groups.gate.member import Member
from shinglefold.groups.likeness import Likeness
from shinglefold.ingest.paths import put
from shinglefold.rerank.similar import Asked
from shinglefold.stored import stored_parts

_PARTS = ("lang", "digest", "signature")


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The judge of real documents."""

    likeness_of: Likeness

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[float | None]:
        """Return how alike members and sources are, None where they do not match.

        Cost: about 10 ns a combination.
        """
        members: dict[int, int] = {}
        sources: dict[int, int] = {}
        asked: list[Asked] = []
        hits: list[Mapping[str, Any]] = []
        places: list[tuple[int, int]] = []
        for member, source in pairs:
            if (one := members.setdefault(id(member), len(asked))) == len(asked):
                asked.append(member.print)
            if (other := sources.setdefault(id(source), len(hits))) == len(hits):
                hits.append({"_source": source})
            places.append((one, other))
        found = {(one, other): likeness for one, other, likeness in self.likeness_of.to_hits(asked, hits)}
        return [found.get(place) for place in places]

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        """Return the pairs of members that match, by their places, the earlier one first."""
        found = self.likeness_of.among([member.print for member in members])
        return [(pair.one, pair.other) for pair in found]

    def print(self, member: Member, /) -> JSON:
        """Return what others compare a member by, as a stored document has it."""
        field = self.likeness_of.field
        parts = stored_parts(member.document, field)
        told: JSON = put({}, field, {name: parts[name] for name in _PARTS if name in parts})
        for path, values in member.print.values.items():
            if not path.startswith(f"{field}."):
                told = put(told, path, list(values))
        return told


def words_of(asked: Asked) -> tuple[str, ...]:
    """Return what documents that match have one of in common: a supershingle, or the whole text."""
    text = asked.print.digest
    return (*asked.print.supershingles, *((f"#{text}",) if text else ()))
