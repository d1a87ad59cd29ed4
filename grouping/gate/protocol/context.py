"""What a decision depends on: the policy, the judge, and the intents of other gates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shinglefold.grouping.gate.protocol.intent_register import IntentRegister
from shinglefold.grouping.gate.protocol.member import GateFields, Member, Similarity
from shinglefold.grouping.rules import Policy
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff


class DocumentJudge(Protocol):
    """Compares members with stored documents, with intents, and with each other."""

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Similarity | None]:
        """Return the similarity of members and stored sources; None if they do not match.

        The measure is symmetric.
        """
        ...

    @property
    def needs_texts(self) -> bool:
        """Whether ``stale`` needs texts that ``likenesses`` does not compare."""
        ...

    def stale(self, sources: Mapping[str, Any]) -> set[str]:
        """Return the ids of those stored sources whose fingerprint is of another text than they have."""
        ...

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members may match the documents of intents, by the parts that ``print`` returns.

        False positives do no harm: a writer waits for such an intent, then compares the stored document.
        There are no false negatives.
        """
        ...

    def pairs(self, members: Sequence[Member]) -> Iterable[tuple[int, int]]:
        """Yield the pairs of members that match, by position, the earlier one first."""
        ...

    def print(self, member: Member, /) -> Any:  # noqa: ANN401 - JSON
        """Return the parts of a member that other gates compare, in the form of a stored document."""
        ...


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
