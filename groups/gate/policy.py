"""What the gate does with a document that resembles a stored one."""

from dataclasses import dataclass
from typing import Literal, get_args

from shinglefold.errors import ConfigError

Action = Literal["refuse", "tag", "cap"]
Measure = Literal["resemblance", "containment"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a gate.

    Attributes:
        action: ``refuse`` what resembles a stored document; ``tag`` it with the group's number; or ``cap``:
            take it while its group has fewer than ``most`` documents.
        most: documents of a group under ``cap``.
        min_resemblance: from which on two documents are alike, above 0 to 1; None takes the scheme's.
        min_length_ratio: as in the scheme, whose it is where None.
        measure: ``containment`` compares with the shorter text alone, so that a text that holds another is
            alike; lengths then do not matter.
        scope: fields (host, language, collection …) whose values must be equal, or documents are not alike.
        min_characters, max_characters: of a text that is let in at all; None sets no limit.
        across_languages: whether texts of different languages may be alike.
    """

    action: Action = "refuse"
    most: int = 1
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    min_characters: int | None = None
    max_characters: int | None = None
    across_languages: bool = False

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ConfigError.unknown("policy", str(self.action), get_args(Action))
        if self.measure not in get_args(Measure):
            raise ConfigError.unknown("measure", str(self.measure), get_args(Measure))
        if not isinstance(self.most, int) or isinstance(self.most, bool) or not 1 <= self.most <= 10_000:
            raise ConfigError(f"cap {self.most!r}: a group has 1 to 10,000 documents at most")
        least = self.min_resemblance
        if least is not None and not 0 < least <= 1:
            raise ConfigError(f"min_resemblance {least!r} is not above 0 and at most 1")
        if self.min_length_ratio is not None and not 0 <= self.min_length_ratio <= 1:
            raise ConfigError(f"min_length_ratio {self.min_length_ratio!r} is outside 0…1")
        self._check_lengths()

    def _check_lengths(self) -> None:
        low, high = self.min_characters, self.max_characters
        for name, value in (("min_characters", low), ("max_characters", high)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise ConfigError(f"{name} {value!r} is no number of characters")
        if low is not None and high is not None and low > high:
            raise ConfigError(f"min_characters {low} is above max_characters {high}: no text would do")

    def misfit(self, characters: int) -> str:
        """Return why a text of this length is not let in; nothing where it is."""
        if self.min_characters is not None and characters < self.min_characters:
            return f"its text has {characters:,} characters, at least {self.min_characters:,} are wanted"
        if self.max_characters is not None and characters > self.max_characters:
            return f"its text has {characters:,} characters, at most {self.max_characters:,} are wanted"
        return ""
