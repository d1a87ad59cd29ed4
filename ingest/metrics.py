"""Counts and seconds by stage, gathered where the work is done and added up across processes."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Meter:
    """What a run did: seconds by stage, counts by name, documents by language."""

    seconds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - start  # type: ignore[assignment] # Counter says int

    def add(self, other: "Meter") -> None:
        """Add what another meter gathered."""
        self.seconds.update(other.seconds)
        self.counts.update(other.counts)
        self.languages.update(other.languages)

    def take(self) -> "Meter":
        """Return what was gathered since the last call and start afresh."""
        taken = Meter(self.seconds, self.counts, self.languages)
        self.seconds, self.counts, self.languages = Counter(), Counter(), Counter()
        return taken
