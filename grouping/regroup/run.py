"""One regrouping: read all, decide, write what differs, until a reading finds nothing more to change."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, EngineError, IndexMissing
from shinglefold.grouping.regroup.census import Census, Taking
from shinglefold.grouping.regroup.checkpoint import PlanJournal
from shinglefold.grouping.regroup.clustering import leaders
from shinglefold.grouping.regroup.guarded_writes import GroupWriter
from shinglefold.grouping.regroup.options import (
    IndexGroups,
    Linkage,
    RegroupCounts,
    RegroupOptions,
    RegroupSummary,
)
from shinglefold.grouping.regroup.plan import GroupChange, plan
from shinglefold.grouping.regroup.text_verdicts import Asking
from shinglefold.grouping.regroup.verdict_log import Verdicts
from shinglefold.grouping.rules import Rules, note
from shinglefold.grouping.scope_values import Values, asked_dates
from shinglefold.grouping.similarity import text_stage
from shinglefold.maintenance.preconditions import check_updatable
from shinglefold.maintenance.scan import Scan, Throttle, keep_alive_for, restart_on_expiry
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Verify
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.values import Int64s
from shinglefold.options.remedies import chain, suggest
from shinglefold.options.validation import check_engine, check_str, check_type
from shinglefold.rerank.request.field_check import check_fields, source_of
from shinglefold.runtime.backoff import retry_unavailable
from shinglefold.runtime.signals import Interrupts

#: What is told on the way: what is being done, how many documents, and the share of it that is done.
Report = Callable[[str, int, float], None]
_USUAL = RegroupOptions()
#: Readings after which others are let be, and readings begun anew without getting to an end.
_PASSES = 5
#: Documents written at a time; more of them where each time is a commit.
_BATCH, _ALONE = 500, 5_000


def regroup(
    engine: Engine,
    index: str,
    options: RegroupOptions = _USUAL,
    *,
    seal: Seal | None = None,
    canonicalizer: Canonicalizer | None = None,
    report: Report | None = None,
) -> RegroupSummary:
    """Group all documents of an index anew by their stored fingerprints, and texts where these decide.

    Documents may be written meanwhile: nothing is written to a version that is not the one decided on, but
    where its text is the same. What came or changed meanwhile is met by the next reading; the run ends when
    a reading finds nothing to change, or after five, and then says that it has not settled.

    Args:
        seal: of the key that the index is sealed with.
        canonicalizer: of the index's scheme, for texts that decide; None makes one when a text is first read.

    Thresholds, scope and linkage are noted in the recipe before anything is read.

    Raises:
        ConfigError: the index numbers no groups or has no such field, an update would lose something of it,
            or the checkpoint is of another regrouping.
        InputError: the checkpoint can't be read or written.
        EngineError: the engine can't be reached at all.
    """
    check_engine(engine)
    check_str("index", index)
    check_type("options", options, RegroupOptions, "RegroupOptions(…)")
    recipe = recipe_with_groups(engine, index)
    _check_names(engine, index, options)
    if options.linkage is None and options.rules == Rules() and not options.by_scheme:
        _check_one_grouping(engine, index)
    check_sealed(recipe.sealed, seal, f"index {index!r}")
    check_updatable(engine, index, recipe.field)
    with Interrupts() as interrupts:
        return _Regrouping(engine, index, recipe, seal, options, interrupts, report, canonicalizer).run()


def find_groups(
    engine: Engine,
    index: str,
    options: RegroupOptions = _USUAL,
    *,
    seal: Seal | None = None,
    canonicalizer: Canonicalizer | None = None,
) -> IndexGroups:
    """Return the groups that ``regroup`` would make; nothing is written, and the index need not number any.

    Args: as ``regroup``.

    Raises:
        ConfigError: the index was not made for fingerprints, or has no such field.
        EngineError: the engine can't be asked.

    Cost: a scan of all fingerprints; some 600 bytes a document.
    """
    check_engine(engine)
    check_str("index", index)
    recipe = one_recipe(engine, index)
    _check_names(engine, index, options)
    check_sealed(recipe.sealed, seal, f"index {index!r}")
    wanted = replace(options, dry_run=True)
    with Interrupts() as interrupts:
        return _Regrouping(engine, index, recipe, seal, wanted, interrupts, None, canonicalizer).groups()


def _check_names(engine: Engine, index: str, options: RegroupOptions) -> None:
    """Refuse mistyped fields: a scope that no document has would part every group.

    Raises:
        ConfigError: one is in no mapping.
    """
    mappings = list(engine.all_mappings(index).values())
    check_fields(mappings, index, options.scope, "scope")
    check_fields(mappings, index, [options.order.removeprefix("-")], "order")


def recipe_with_groups(engine: Engine, index: str) -> Recipe:
    """Return the recipe of an index whose documents have the numbers of groups.

    Raises:
        ConfigError: it was not made for fingerprints, or numbers no groups, or is of several recipes.
    """
    for name, mappings in sorted(engine.all_mappings(index).items()):
        if not Recipe.of(mappings, name).groups:
            raise ConfigError(
                f"index {name!r} numbers no groups; let it: "
                f"{chain([suggest('setup', name, groups=True), suggest('regroup', index)])}"
            )
    return one_recipe(engine, index)


def one_recipe(engine: Engine, index: str) -> Recipe:
    """Return the recipe that all indices of a name have.

    Raises:
        ConfigError: one was not made for fingerprints, or they have different recipes.
    """
    recipes = {
        name: Recipe.of(mappings, name) for name, mappings in sorted(engine.all_mappings(index).items())
    }
    first = next(iter(recipes), "")
    for name, recipe in recipes.items():
        recipes[first].check(recipe, name, f"Regroup {first} and {name} each by itself.")
    if not recipes:
        raise ConfigError(f"{index!r} names no index")
    return recipes[first]


def _check_one_grouping(engine: Engine, index: str) -> None:
    """Refuse to carry the rules that one index notes over to another unasked.

    Raises:
        ConfigError: the indices note different ones.
    """
    noted = {name: Recipe.of(found, name).grouping for name, found in engine.all_mappings(index).items()}
    first = min(noted)
    for name in sorted(noted):
        if noted[name] != noted[first]:
            ours, theirs = (json.dumps(noted[one]) if noted[one] else "none" for one in (first, name))
            raise ConfigError(
                f"indices {first!r} and {name!r} note different rules for groups, {ours} and {theirs}: "
                f"regroup each by itself, or all by the scheme: {suggest('regroup', index, by_scheme=True)}"
            )


@dataclass(slots=True)
class _Regrouping:
    engine: Engine
    index: str
    recipe: Recipe
    seal: Seal | None
    options: RegroupOptions
    interrupts: Interrupts
    report: Report | None
    canonicalizer: Canonicalizer | None
    counts: RegroupCounts = field(default_factory=RegroupCounts)
    passes: int = 0
    settled: bool = False
    resumed: bool = False
    journal: PlanJournal = field(init=False)
    pace: Throttle = field(init=False)
    writer: GroupWriter = field(init=False)
    values: Values = field(init=False)
    asking: Asking | None = field(init=False)

    def __post_init__(self) -> None:
        given = self.options = self.options.settled(self.recipe)
        self.values = Values.of_all(self.engine, self.index, given.scope)
        path = None if given.checkpoint is None or given.dry_run else Path(given.checkpoint)
        scheme = self.recipe.scheme.id
        self.journal = PlanJournal(path, given.job(self.index, scheme))
        self.pace = Throttle(given.requests_per_second)
        self.writer = GroupWriter(
            self.engine, self.index, self.recipe.field, scheme, given.backoff, lambda: self.interrupts.pending
        )
        self.asking = self._asking() if self._verify == "text" else None

    @property
    def _verify(self) -> Verify:
        return self.options.rules.verified_by(self.recipe.scheme.decision)

    def _asking(self) -> Asking:
        given, journal = self.options, self.journal
        wanted = given.verify is not None or given.min_similarity is not None
        stage = text_stage(self.recipe, given.rules, self.canonicalizer, wanted=wanted)
        verdicts = Verdicts(journal.verdicts, journal.job)
        return Asking(self.engine, self.recipe.field, stage, given.backoff, verdicts, self._asked)

    def _asked(self, documents: int) -> None:
        """Keep to the pace while texts are read, and look whether the run is to end."""
        self.pace.wait(documents)
        self.interrupts.check()

    @property
    def _linkage(self) -> Linkage:
        assert self.options.linkage is not None
        return self.options.linkage

    def run(self) -> RegroupSummary:
        start = perf_counter()
        stopped, anew = "", False
        left = self.journal.load()
        try:
            if not self.options.dry_run:
                # Before the first reading: what others number from now on is numbered alike.
                note(self.engine, self.index, self.options.rules, self._linkage)
            if left is not None:
                self.passes, self.counts, self.resumed = left.passes, left.counts, True
                self._write(left.changes, left.done)
                # Not to be held beside the readings.
                left = None
            self._all()
        except KeyboardInterrupt as error:
            stopped = str(error) or "interrupted"
        except EngineError as error:
            # What was planned is for documents that are gone.
            stopped, anew = str(error), isinstance(error, IndexMissing)
        asking = self.asking
        if not stopped or anew:
            self.journal.remove()
            if asking is not None:
                asking.verdicts.remove()
        return RegroupSummary(
            self.index,
            self._linkage,
            self.counts,
            self.passes,
            perf_counter() - start,
            self.settled,
            self.resumed,
            self.options.dry_run,
            stopped,
            self._verify,
            "" if asking is None else asking.stage.missing,
            anew,
        )

    def groups(self) -> IndexGroups:
        """Read the index once and return its groups of several documents, the leader of each first."""
        taken = restart_on_expiry(self._read)
        with self.interrupts.breakable():
            census = taken.census()
            members: dict[int, list[int]] = {}
            for place, leader in enumerate(self._leaders(census).tolist()):
                members.setdefault(leader, []).append(place)
            several = [
                census.keys.several(sorted(places, key=lambda place: (place != leader, place)))
                for leader, places in members.items()
                if len(places) > 1
            ]
        return IndexGroups(several, len(census), taken.left)

    def _all(self) -> None:
        first = self.passes
        while self.passes < max(_PASSES, first + 1):
            changes = self._planned()
            self.passes += 1
            if self.options.dry_run:
                return
            if not changes:
                self.settled = True
                return
            self.journal.begin(changes, self.passes, self.counts)
            self._write(changes)
            # Not to be held beside the next reading.
            del changes

    def _planned(self) -> Sequence[GroupChange]:
        """Read the index and return what is to be written."""
        taken = restart_on_expiry(self._read)
        with self.interrupts.breakable():
            census = taken.census()
            self.counts.read, self.counts.left = len(census) + taken.left, taken.left
            self._tell("grouping", len(census), 0.0)
            found = self._leaders(census)
            return list(plan(census, found, self.recipe.scheme, taken.reserved, self.counts))

    def _leaders(self, census: Census) -> Int64s:
        asking = self.asking
        if asking is None:
            return leaders(census, self.recipe.scheme, self.options)
        before = asking.asked, asking.unread
        try:
            return leaders(census, asking.stage.scheme, self.options, asking)
        finally:
            self.counts.asked += asking.asked - before[0]
            self.counts.unread += asking.unread - before[1]

    def _read(self) -> Taking:
        given, recipe = self.options, self.recipe
        order, dates = self._order()
        taken = Taking(recipe.scheme, recipe.field, self.seal, given.scope, order, self.values)
        retry_unavailable(lambda: self.engine.refresh(self.index), given.backoff)
        scan = Scan(
            self.engine,
            self.index,
            backoff=given.backoff,
            keep_alive=keep_alive_for(given.requests_per_second),
            fields=taken.fields,
            values=dates,
        )
        place = scan.start()
        total, read = scan.total(place), 0
        for page in scan.pages(place):
            taken.take(page.hits)
            place, read = page.place, read + len(page.hits)
            self._tell("reading", read, read / total if total else 0.0)
            with self.interrupts.breakable():
                self.pace.wait(len(page.hits))
            self.interrupts.check()
        scan.close(place)
        if taken.unordered:
            raise ConfigError(
                f"no document of {self.index!r} tells {given.order.removeprefix('-')!r} in its _source, so "
                "that none would lead by it: name another field for the order, or none"
            )
        return taken

    def _order(self) -> tuple[str, Sequence[JSON]]:
        """Return where documents have what they are to lead by, if anything, and how the index tells it."""
        if not (named := self.options.order.removeprefix("-")):
            return "", ()
        several = list(self.engine.all_mappings(self.index).values())
        dates = asked_dates(several, [named])
        return (named, dates) if dates else (source_of(several, named), ())

    def _write(self, changes: Sequence[GroupChange], before: int = 0) -> None:
        size = _BATCH if self.engine.can.seq_no else _ALONE
        for begin in range(0, len(changes), size):
            batch = changes[begin : begin + size]
            # What was written must be accounted for, even at a Ctrl-C.
            with self.interrupts.held():
                self.writer.write(batch, self.counts)
                done = before + begin + len(batch)
                self.journal.save(done, self.passes, self.counts)
            self._tell("writing", done, done / (before + len(changes)))
            with self.interrupts.breakable():
                self.pace.wait(len(batch))

    def _tell(self, what: str, documents: int, fraction: float) -> None:
        if self.report is not None:
            self.report(what, documents, min(1.0, fraction))
