"""The options of a regrouping, and its results."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from shinglefold.errors import ConfigError
from shinglefold.grouping.rules import Rules
from shinglefold.maintenance.reconcile import DocumentKey
from shinglefold.model.linkage import Linkage, noted_linkage
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Verify
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_fraction,
    check_number,
    check_path,
    check_str,
)
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff

#: The most distinct reasons of failures that are kept; all failures are counted.
_REASONS = 100


@dataclass(frozen=True, slots=True)
class RegroupOptions:
    """How to regroup an index. Rules that are None follow those that the index stores, then the scheme.

    Attributes:
        linkage: ``leader``: each member resembles the leader of its group, and no two leaders resemble each
            other. ``connected``: documents that chains of pairs connect are one group.
        order: the field that decides which documents lead: those with the least value, or, with a minus
            before the field, with the greatest. "" prefers documents that lead now. Ties are broken by id.
        min_resemblance, min_length_ratio: thresholds for pairs.
        scope: fields whose values must be equal.
        verify: what decides about pairs that share a supershingle, see ``Policy``.
        min_similarity: the edit similarity that texts must reach.
        by_scheme: forget the rules that the index stores.
        requests_per_second: how many documents are read, and written, a second; 0 sets no limit.
        checkpoint: the file by which a later run can resume.
        dry_run: count the changes and write nothing.
    """

    linkage: Linkage | None = None
    order: str = ""
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    scope: tuple[str, ...] = ()
    verify: Verify | None = None
    min_similarity: float | None = None
    by_scheme: bool = False
    requests_per_second: float = 0.0
    checkpoint: str | Path | None = None
    dry_run: bool = False
    backoff: Backoff = DEFAULT_BACKOFF

    def __post_init__(self) -> None:
        if self.linkage is not None:
            check_choice("linkage", self.linkage, get_args(Linkage))
        check_fraction("min_resemblance", self.min_resemblance)
        self.rules.check()
        for name in ("by_scheme", "dry_run"):
            check_bool(name, getattr(self, name))
        check_str("order", self.order, empty=True)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        if self.order == "-":
            raise ConfigError("order '-' names no field: write -FIELD, or leave it out")
        check_number("requests_per_second", self.requests_per_second)

    @property
    def rules(self) -> Rules:
        """The rules by which documents match."""
        return Rules.of_options(self)

    def with_stored_rules(self, recipe: Recipe) -> "RegroupOptions":
        """Return the options, completed by the rules that an index stores."""
        noted = replace(recipe, grouping={}) if self.by_scheme else recipe
        rules = asdict(self.rules.or_noted(noted))
        del rules["measure"]
        return replace(self, linkage=self.linkage or noted_linkage(noted.grouping), **rules)

    def job(self, index: str, scheme: str) -> dict[str, Any]:
        """Return what identifies the job: a checkpoint is valid for the same job only."""
        rules = {**asdict(self.rules), "scope": list(self.scope)}
        del rules["measure"]
        return {"index": index, "scheme": scheme, "linkage": self.linkage, "order": self.order, **rules}


@dataclass(slots=True)
class RegroupCounts:
    """What a regrouping found and did: ``planned == written + already + changed + gone + failed`` at its end.

    Attributes:
        read: documents of the last pass over the index.
        without_fingerprint: those of them without a readable fingerprint of the scheme; they are not changed.
        groups_before: groups before the run; −1 until they were counted.
        groups, shared: groups after the run, and those with more than one document.
        numbered, moved: documents that had no number, and that had another.
        relabelled: documents that only begin or cease to lead.
        merged, merged_from: groups that hold documents of several earlier ones, and how many these are.
        split, split_into: earlier groups whose documents are in several ones now, and how many these are.
        already: changes that an earlier, interrupted run had written.
        changed: documents whose text was changed meanwhile; the next pass decides about them.
        gone: documents that were deleted meanwhile.
        conflicts: updates that were repeated because another writer was faster.
        by_text, by_signature: uncertain pairs that texts decided, and those that signatures decided because a
            text is missing, too long or changed; both of all passes.
        reasons: why documents failed, with counts.
    """

    read: int = 0
    without_fingerprint: int = 0
    groups_before: int = -1
    groups: int = 0
    shared: int = 0
    numbered: int = 0
    moved: int = 0
    relabelled: int = 0
    merged: int = 0
    merged_from: int = 0
    split: int = 0
    split_into: int = 0
    planned: int = 0
    written: int = 0
    already: int = 0
    changed: int = 0
    gone: int = 0
    failed: int = 0
    conflicts: int = 0
    by_text: int = 0
    by_signature: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        """Count a document that can't be written, by the reason."""
        self.failed += 1
        known = reason if reason in self.reasons or len(self.reasons) < _REASONS else "(other reasons)"
        self.reasons[known] = self.reasons.get(known, 0) + 1


class IndexGroups(NamedTuple):
    """The groups of an index, without those of one document.

    Attributes:
        groups: the keys of the documents of each, the leader first.
        documents: how many were compared.
        without_fingerprint: how many have no readable fingerprint of the scheme: backfill them.
    """

    groups: list[list[DocumentKey]]
    documents: int
    without_fingerprint: int


@dataclass(frozen=True, slots=True)
class RegroupSummary:
    """The result of a run; ``counts`` are of all runs of one checkpoint.

    Attributes:
        passes: how often the index was read.
        settled: whether a pass after the last write found nothing more to change.
        resumed: whether the run resumed from a checkpoint.
        verify: what decided about pairs: ``keywords``, ``signature`` or ``text``.
        missing: why texts that should decide could not be read; "" if they could.
        stopped: why the run ended early; "" if it did not.
        anew: whether the index was deleted or replaced, so that the next run starts from the beginning.
    """

    index: str
    linkage: str
    counts: RegroupCounts
    passes: int
    seconds: float
    settled: bool
    resumed: bool = False
    dry_run: bool = False
    stopped: str = ""
    verify: str = "signature"
    missing: str = ""
    anew: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, one flat object."""
        data = asdict(self)
        counts = data.pop("counts")
        return {**data, "seconds": round(self.seconds, 3), **counts}
