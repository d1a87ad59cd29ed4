"""The policy of a gate: what it does with a document that resembles a stored one."""

from dataclasses import dataclass
from typing import Literal, get_args

from shinglefold.errors import ConfigError
from shinglefold.grouping.rules import MOST_SCOPES, Measure
from shinglefold.model.scheme import Decision, Facts, Verify, verified_by
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_fraction,
    check_int,
    check_number,
    check_strings,
)

#: What the gate does with a document that resembles a stored one.
PolicyAction = Literal["refuse", "tag", "cap"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a gate.

    Attributes:
        action: ``refuse`` a document that resembles a stored one; ``tag``: store it with the number of its
            group; ``cap``: store it while its group has fewer than ``most`` documents.
        most: documents of a group under ``cap``.
        min_resemblance: at which two documents are alike, above 0 to 1; None takes the scheme's.
        min_length_ratio: as in the scheme; None takes the scheme's.
        measure: ``containment`` compares with the shorter text alone, so that a text that holds another
            matches it; lengths then do not matter.
        scope: fields (host, language, collection …) whose values must be equal, or documents are not alike.
        min_characters, max_characters: limits of the text; None sets no limit.
        across_languages: whether texts of different languages may be alike.
        verify: what decides about documents that share a supershingle: ``keywords``: that they do;
            ``signature``: the estimate; ``text``: the texts, of pairs that signatures leave in doubt. None
            follows a threshold given here, then the rules that the index notes for groups, then the scheme.
        min_similarity: the edit similarity that texts must reach.
        facts: with ``numbers`` texts whose words with digits differ are not alike.
    """

    action: PolicyAction = "refuse"
    most: int = 1
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    min_characters: int | None = None
    max_characters: int | None = None
    across_languages: bool = False
    verify: Verify | None = None
    min_similarity: float | None = None
    facts: Facts = "any"

    def __post_init__(self) -> None:
        check_choice("policy", self.action, get_args(PolicyAction))
        check_choice("measure", self.measure, get_args(Measure))
        # One string would be taken for its letters.
        check_strings("scope", self.scope, MOST_SCOPES)
        check_int("most (documents of a group)", self.most, 1, 10_000)
        check_number("min_resemblance", self.min_resemblance, 0, 1, above=True, optional=True)
        check_fraction("min_length_ratio", self.min_length_ratio)
        check_bool("across_languages", self.across_languages)
        self._check_verified()
        self._check_lengths()

    def _check_verified(self) -> None:
        check_fraction("min_similarity", self.min_similarity)
        if self.verify is not None:
            check_choice("way to verify", self.verify, get_args(Verify))
        if self.measure == "containment" and (self.verify or "signature") != "signature":
            raise ConfigError(
                "containment is decided by signatures alone: leave verify out, or set it to signature"
            )
        check_choice("facts", self.facts, get_args(Facts))
        decided = verified_by(Decision(), self.verify, self.min_resemblance, self.min_similarity)
        if self.facts == "numbers" and (decided != "text" or self.measure == "containment"):
            raise ConfigError(
                "facts: numbers stand in the texts, which decide on resemblance by verify text only"
            )

    def _check_lengths(self) -> None:
        low, high = self.min_characters, self.max_characters
        check_int("min_characters", low, optional=True)
        check_int("max_characters", high, optional=True)
        if low is not None and high is not None and low > high:
            raise ConfigError(f"min_characters {low} is above max_characters {high}: no text fits")

    def misfit(self, characters: int) -> str:
        """Return why a text of this length is refused; "" where it fits."""
        if self.min_characters is not None and characters < self.min_characters:
            return f"its text has {characters:,} characters, at least {self.min_characters:,} are wanted"
        if self.max_characters is not None and characters > self.max_characters:
            return f"its text has {characters:,} characters, at most {self.max_characters:,} are wanted"
        return ""
