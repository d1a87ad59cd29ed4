"""The books of a run: what became of every document, how far it is, and how it ended."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.writing.accounting import Failed
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.offline.sign.run_journal import State
from shinglefold.offline.sign.signer import SignTally
from shinglefold.offline.sign.tasks import Task

_REASONS = 20


@dataclass(frozen=True, slots=True)
class Signed:
    """The end of a run: ``read == signed + failed``.

    ``resumed``: documents of these that a run before had read. ``seconds``: ``total`` of the clock, stages
    added up over the workers. ``failures``: where each of the commonest reasons was met first. ``stopped``:
    why the run ended early. ``present``: fields that some document has; ``sample``: a few documents.
    """

    target: str
    scheme: str
    read: int
    signed: int
    failed: int
    resumed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failed, ...] = ()
    dead_letters: str = ""
    stopped: str = ""
    present: frozenset[str] = frozenset()
    sample: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, seconds to the millisecond."""
        told = {name: value for name, value in asdict(self).items() if name not in ("present", "sample")}
        return {**told, "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()}}


@dataclass(frozen=True, slots=True)
class SignPace:
    """How far a run is: the share of the sources, documents, how many a second, and seconds left."""

    fraction: float
    signed: int
    failed: int
    rate: float
    left: float | None


@dataclass(slots=True)
class Books:
    """What became of all documents, over all runs of one output."""

    letters: DeadLetters
    signed: int = 0
    failed: int = 0
    tasks: int = 0
    #: The source that is being read, and its lines so far.
    source: str = ""
    lines: int = 0
    resumed: int = 0
    meter: Meter = field(default_factory=Meter)
    present: set[str] = field(default_factory=set)
    sample: tuple[Mapping[str, Any], ...] = ()

    def take_over(self, state: State) -> None:
        """Go on with the books of a run before."""
        self.signed, self.failed, self.tasks = state["signed"], state["failed"], state["tasks"]
        self.source, self.lines = state["source"], state["lines"]
        self.meter.counts.update(state["counts"])
        self.meter.languages.update(state["languages"])
        self.present.update(state["present"])
        self.letters.reasons.update(state["reasons"])
        self.resumed = self.signed + self.failed

    def state(self, size: int) -> State:
        """Return the books as the journal notes them."""
        return {
            "tasks": self.tasks,
            "bytes": size,
            "signed": self.signed,
            "failed": self.failed,
            "source": self.source,
            "lines": self.lines,
            "counts": dict(self.meter.counts),
            "languages": dict(self.meter.languages),
            "present": sorted(self.present),
            "reasons": dict(self.letters.reasons.most_common(_REASONS)),
        }

    def keep(self, task: Task, tally: SignTally) -> None:
        """Keep the documents of a task that failed.

        Raises:
            Unwritable: there is no room for them.
        """
        before = self.lines if task.source == self.source else 0
        for stage, reason, record in tally.refused:
            self.letters.write(stage, reason, replace(record, line=record.line + before))

    def book(self, task: Task, tally: SignTally) -> None:
        """Account for every document of a task."""
        if task.source != self.source:
            self.source, self.lines = task.source, 0
        self.lines += tally.lines
        self.signed += tally.signed
        self.failed += len(tally.refused)
        self.tasks += 1
        self.meter.add(tally.meter)
        self.present |= tally.present
        self.sample = self.sample or tuple(tally.sample)

    def pace(self, task: Task, since: float, already: int, seconds: float) -> SignPace:
        """Return how far the run is.

        Args:
            since: the share of the sources that was done when the clock began.
            already: the documents that were.
            seconds: of the clock.
        """
        done = self.signed + self.failed
        share = task.fraction - since
        left = seconds * (1 - task.fraction) / share if share > 0 and seconds > 1 else None
        return SignPace(task.fraction, self.signed, self.failed, (done - already) / max(seconds, 1e-9), left)

    def summary(self, target: Path | None, scheme: str, stopped: str, total: float) -> Signed:
        """Return the end of the run; see ``Signed``."""
        letters = self.letters
        return Signed(
            target=str(target) if target is not None else "-",
            scheme=scheme,
            read=self.signed + self.failed,
            signed=self.signed,
            failed=self.failed,
            resumed=self.resumed,
            seconds={**self.meter.seconds, "total": total},
            languages=dict(self.meter.languages.most_common()),
            counts={name: count for name, count in sorted(self.meter.counts.items()) if count},
            reasons=dict(letters.reasons.most_common()),
            failures=tuple(
                Failed(reason, *letters.first[reason])
                for reason, _ in letters.reasons.most_common(_REASONS)
                if reason in letters.first
            ),
            dead_letters=str(letters.path) if letters.kept else "",
            stopped=stopped,
            present=frozenset(self.present),
            sample=self.sample,
        )
