"""What a regrouping may be asked for, and what it tells."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from shinglefold.errors import ConfigError, InputError
from shinglefold.grouping.rules import MOST_SCOPES, Rules
from shinglefold.maintenance.reconcile import Key
from shinglefold.maintenance.scan import PATIENCE
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Decision, Verify, verified_by
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_fraction,
    check_number,
    check_path,
    check_str,
    check_strings,
)
from shinglefold.runtime.backoff import Backoff

Linkage = Literal["leader", "connected"]
#: Reasons kept; the counts go on.
_LISTED = 100


@dataclass(frozen=True, slots=True)
class RegroupOptions:
    """How an index is grouped anew.

    ``linkage``: ``leader``: each member resembles the leader of its group, and no two leaders resemble each
    other; ``connected``: chains of pairs are one group; None is as noted, at first ``leader``. ``order``: the
    field by whose values documents may lead, the least first, with a minus before it the greatest; documents
    that lead now where none is named. Ties are settled by id. ``min_resemblance``, ``min_length_ratio``: None
    is as noted, at first as in the scheme. ``scope``: fields whose values must be equal. ``verify``: what
    decides on pairs that share a supershingle: ``keywords``, that they do; ``signature``; or ``text``: the
    texts, of pairs that signatures leave in doubt; None is what a threshold here is of, then as noted, at
    first as in the scheme. ``min_similarity``: the edit similarity that texts must reach. What is said here
    is noted in the recipe, for whoever numbers documents later; ``by_scheme``: forget what an earlier run
    noted. ``requests_per_second``: documents read, and documents written, a second; 0 for no limit.
    ``checkpoint``: the file that lets a later run go on. ``dry_run``: tell what would change, and write
    nothing.
    """

    linkage: Linkage | None = None
    order: str = ""
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    across_languages: bool = False
    scope: tuple[str, ...] = ()
    verify: Verify | None = None
    min_similarity: float | None = None
    by_scheme: bool = False
    requests_per_second: float = 0.0
    checkpoint: str | Path | None = None
    dry_run: bool = False
    backoff: Backoff = PATIENCE

    def __post_init__(self) -> None:
        if self.linkage is not None:
            check_choice("linkage", self.linkage, get_args(Linkage))
        check_fraction("min_resemblance", self.min_resemblance)
        check_fraction("min_length_ratio", self.min_length_ratio)
        check_fraction("min_similarity", self.min_similarity)
        if self.verify is not None:
            check_choice("way to verify", self.verify, get_args(Verify))
        for name in ("across_languages", "by_scheme", "dry_run"):
            check_bool(name, getattr(self, name))
        # One field would be taken for its letters.
        check_strings("scope", self.scope, MOST_SCOPES)
        check_str("order", self.order, empty=True)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        if self.order == "-":
            raise ConfigError("order '-' names no field: write -FIELD, or leave it out")
        verified_by(Decision(), self.verify, self.min_resemblance, self.min_similarity)
        check_number("requests_per_second", self.requests_per_second)

    @property
    def rules(self) -> Rules:
        """When two documents are alike."""
        return Rules(
            self.min_resemblance,
            self.min_length_ratio,
            scope=self.scope,
            across_languages=self.across_languages,
            verify=self.verify,
            min_similarity=self.min_similarity,
        )

    def settled(self, recipe: Recipe) -> "RegroupOptions":
        """Return the options with what an index notes in the place of what they don't say."""
        noted = replace(recipe, grouping={}) if self.by_scheme else recipe
        linkage = self.linkage or noted.grouping.get("linkage", "leader")
        rules = self.rules.or_noted(noted)
        return replace(
            self,
            linkage=linkage,
            min_resemblance=rules.min_resemblance,
            min_length_ratio=rules.min_length_ratio,
            scope=rules.scope,
            across_languages=rules.across_languages,
            verify=rules.verify,
            min_similarity=rules.min_similarity,
        )

    def job(self, index: str, scheme: str) -> dict[str, Any]:
        """Return what the regrouping is about: a checkpoint is good for the same one only."""
        return {
            "index": index,
            "scheme": scheme,
            "linkage": self.linkage,
            "order": self.order,
            "min_resemblance": self.min_resemblance,
            "min_length_ratio": self.min_length_ratio,
            "across_languages": self.across_languages,
            "scope": list(self.scope),
            "verify": self.verify,
            "min_similarity": self.min_similarity,
        }


@dataclass(slots=True)
class RegroupCounts:
    """What was found and done; ``planned == written + already + changed + gone + failed`` in the end.

    ``read``: documents of the last reading; ``left``: those without a readable fingerprint of the scheme,
    left as they are. ``groups_before`` (−1: not read yet), ``groups``: groups before and after; ``shared``:
    of these the ones with more than one document. ``numbered``: documents that had no number; ``moved``:
    documents that had another; ``relabelled``: documents that only lead now, or lead no more. ``merged``:
    groups that hold documents of ``merged_from`` earlier ones; ``split``: groups whose documents are in
    ``split_into`` now. ``already``: written by an earlier run that was cut short; ``changed``: documents
    whose text somebody changed meanwhile, which are left to the next reading; ``gone``: deleted meanwhile.
    ``asked``: pairs that texts decided; ``unread``: pairs in doubt of which a text is missing, too long, or
    was changed meanwhile, so that signatures decided; both of all readings.
    ``conflicts``: updates that another writer was faster than, made again.
    """

    read: int = 0
    left: int = 0
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
    asked: int = 0
    unread: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        """Count a document that can't be written, and why."""
        self.failed += 1
        known = reason if reason in self.reasons or len(self.reasons) < _LISTED else "(other reasons)"
        self.reasons[known] = self.reasons.get(known, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RegroupCounts":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: it is something else.
        """
        if data.keys() != {one.name for one in fields(cls)}:
            raise InputError("not the counts of a regrouping")
        return cls(**data)


class IndexGroups(NamedTuple):
    """The groups of an index, without those of one document.

    ``groups``: the keys of the documents of each, the leader first. ``documents``: how many were compared.
    ``unsigned``: how many were not, because they have no readable fingerprint of the scheme: backfill them.
    """

    groups: list[list[Key]]
    documents: int
    unsigned: int


@dataclass(frozen=True, slots=True)
class RegroupSummary:
    """The end of a run; ``counts`` are of all runs of one checkpoint.

    ``passes``: how often the index was read. ``settled``: a reading after the last write found nothing more
    to change. ``resumed``: an earlier run was gone on with. ``verify``: what decided. ``missing``: why texts
    could not be read though they would have decided, empty where they could. ``stopped``: why the run ended
    early, empty where it did not. ``anew``: the index was deleted, or another has its place, so that the next
    run has nothing to go on from.
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
        rest = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "counts"}
        return {**rest, "seconds": round(self.seconds, 3), **self.counts.to_json()}
