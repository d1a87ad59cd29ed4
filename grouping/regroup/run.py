"""Regroup an index: read all documents, decide, write what differs, until a pass finds nothing to change."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, EngineError, IndexMissing, chain, suggest
from shinglefold.grouping.field_values import Values, date_doc_values
from shinglefold.grouping.regroup.census import Census, CensusReader
from shinglefold.grouping.regroup.clustering import leaders
from shinglefold.grouping.regroup.options import (
    IndexGroups,
    RegroupCounts,
    RegroupOptions,
    RegroupSummary,
)
from shinglefold.grouping.regroup.plan import GroupChange, GroupWriter, PlanJournal, plan
from shinglefold.grouping.regroup.text_verdicts import TextVerdicts, VerdictLog
from shinglefold.grouping.rules import Rules, note
from shinglefold.grouping.similarity import text_stage
from shinglefold.ingest.writing.target_index import IndexChanged, IndexWatch
from shinglefold.maintenance.preconditions import check_updatable
from shinglefold.maintenance.scan import Scan, Throttle, restart_on_expiry
from shinglefold.model.linkage import Linkage
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Verify
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.values import Int64s
from shinglefold.options.validation import check_engine, check_str, check_type
from shinglefold.rerank.index_fields import check_fields, source_of
from shinglefold.runtime.backoff import retry_unavailable
from shinglefold.runtime.signals import Interrupts

#: Reports progress: the step, the number of documents, and the share that is done.
Report = Callable[[str, int, float], None]
_DEFAULTS = RegroupOptions()
#: The most passes. If other writers keep changing documents, the last changes are left to a later run.
_PASSES = 5
#: The most documents written at a time: on servers, and on embedded engines, where each write is a commit.
_BATCH, _ALONE = 500, 5_000


def regroup(
    engine: Engine,
    index: str,
    options: RegroupOptions = _DEFAULTS,
    *,
    seal: Seal | None = None,
    report: Report | None = None,
) -> RegroupSummary:
    """Regroup all documents of an index, by their stored fingerprints and, if these decide, texts.

    Thresholds, scope and linkage are noted in the recipe before anything is read. Documents may be written
    meanwhile: a number is never written to a document whose text has changed since it was read. The next pass
    decides about new and changed documents. The run ends when a pass finds nothing to change, or after five.

    Args:
        seal: the seal with the key of the index.

    Raises:
        ConfigError: the index numbers no groups, lacks a field, or would lose fields by an update; or the
            checkpoint belongs to another job.
        InputError: the checkpoint can't be read or written.
        EngineError: the engine can't be reached at all.
    """
    found, recipe = _check_index(engine, index, options, seal, groups=True)
    if options.linkage is None and options.rules == Rules() and not options.by_scheme:
        _check_one_grouping(found, index)
    check_updatable(engine, index, recipe.field)
    with Interrupts() as interrupts:
        return _Regrouping(engine, index, recipe, seal, options, interrupts, report).run()


def find_groups(
    engine: Engine,
    index: str,
    options: RegroupOptions = _DEFAULTS,
    *,
    seal: Seal | None = None,
) -> IndexGroups:
    """Return the groups that ``regroup`` would make, without writing them.

    The documents need no group numbers.

    Args:
        seal: see ``regroup``.

    Raises:
        ConfigError: the index was not set up for fingerprints, or lacks a field.
        EngineError: a request to the engine failed.

    Cost: a scan of all fingerprints; some 600 bytes a document.
    """
    _, recipe = _check_index(engine, index, options, seal, groups=False)
    dry = replace(options, dry_run=True)
    with Interrupts() as interrupts:
        return _Regrouping(engine, index, recipe, seal, dry, interrupts, None).groups()


def _check_index(
    engine: Engine, index: str, options: RegroupOptions, seal: Seal | None, *, groups: bool
) -> tuple[Mapping[str, JSON], Recipe]:
    """Check what both functions are given, and return the mappings and the recipe of the index."""
    check_engine(engine)
    check_str("index", index)
    check_type("options", options, RegroupOptions, "RegroupOptions(…)")
    found = engine.all_mappings(index)
    recipe = _one_recipe(found, index, groups=groups)
    # A scope without values would divide every group.
    check_fields(found.values(), index, options.scope, "scope")
    check_fields(found.values(), index, [options.order.removeprefix("-")], "order")
    check_sealed(recipe.sealed, seal, f"index {index!r}")
    return found, recipe


def _one_recipe(found: Mapping[str, JSON], index: str, *, groups: bool) -> Recipe:
    """Return the recipe that all indices of a name have.

    Raises:
        ConfigError: one was not set up for fingerprints, or for ``groups``, or they have different recipes.
    """
    recipes = {name: Recipe.of(mappings, name) for name, mappings in sorted(found.items())}
    for name, recipe in recipes.items():
        if groups and not recipe.groups:
            raise ConfigError(
                f"index {name!r} numbers no groups: "
                f"{chain([suggest('setup', name, groups=True), suggest('regroup', index)])}"
            )
    first = next(iter(recipes), "")
    for name, recipe in recipes.items():
        recipes[first].check(recipe, name, f"Regroup {first} and {name} each by itself.")
    if not recipes:
        raise ConfigError(f"{index!r} names no index")
    return recipes[first]


def _check_one_grouping(found: Mapping[str, JSON], index: str) -> None:
    """Raise ``ConfigError`` where indices store different rules, so that none overrides another unnoticed."""
    noted = {name: Recipe.of(mappings, name).grouping for name, mappings in found.items()}
    first = min(noted)
    for name in sorted(noted):
        if noted[name] != noted[first]:
            one, other = (json.dumps(noted[key]) if noted[key] else "none" for key in (first, name))
            raise ConfigError(
                f"indices {first!r} and {name!r} note different rules for groups, {one} and {other}: "
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
    counts: RegroupCounts = field(default_factory=RegroupCounts)
    passes: int = 0
    settled: bool = False
    resumed: bool = False
    journal: PlanJournal = field(init=False)
    pace: Throttle = field(init=False)
    writer: GroupWriter = field(init=False)
    values: Values = field(init=False)
    text_verdicts: TextVerdicts | None = field(init=False)
    watch: IndexWatch = field(init=False)

    def __post_init__(self) -> None:
        given = self.options = self.options.with_stored_rules(self.recipe)
        self.values = Values.of_all(self.engine, self.index, given.scope)
        path = None if given.checkpoint is None or given.dry_run else Path(given.checkpoint)
        scheme = self.recipe.scheme.id
        self.journal = PlanJournal(path, given.job(self.index, scheme))
        self.pace = Throttle(given.requests_per_second)
        self.writer = GroupWriter(
            self.engine, self.index, self.recipe.field, scheme, given.backoff, lambda: self.interrupts.pending
        )
        again = suggest("regroup", self.index)
        self.watch = IndexWatch(self.engine, self.index, self.recipe, again)
        self.text_verdicts = self._new_text_verdicts() if self._verify == "text" else None

    @property
    def _verify(self) -> Verify:
        return self.options.rules.verified_by(self.recipe.scheme.decision)

    def _new_text_verdicts(self) -> TextVerdicts:
        given, journal = self.options, self.journal
        wanted = given.verify is not None or given.min_similarity is not None
        stage = text_stage(self.recipe, given.rules, wanted=wanted)
        log = VerdictLog(journal.verdicts, journal.job)
        return TextVerdicts(self.engine, self.recipe.field, stage, given.backoff, log, self._texts_read)

    def _texts_read(self, documents: int) -> None:
        """Limit the rate at which texts are read, and stop at a signal."""
        self.pace.wait(documents)
        self.interrupts.check()

    @property
    def _linkage(self) -> Linkage:
        assert self.options.linkage is not None
        return self.options.linkage

    def run(self) -> RegroupSummary:
        start = perf_counter()
        stopped, anew = "", False
        resume = self.journal.load()
        try:
            if not self.options.dry_run:
                # Before the first pass, so that others follow the same rules from now on.
                note(self.engine, self.index, self.options.rules, self._linkage)
            self.watch.begin()
            if resume is not None:
                self.passes, self.counts, self.resumed = resume.passes, resume.counts, True
                self._write(resume.changes, resume.done)
                # Free the memory before the first pass.
                resume = None
            self._run_passes()
        except KeyboardInterrupt as error:
            stopped = str(error) or "interrupted"
        except EngineError as error:
            # If the index is gone, the plan is useless.
            stopped, anew = str(error), isinstance(error, IndexMissing | IndexChanged)
        by_text = self.text_verdicts
        if not stopped or anew:
            self.journal.remove()
            if by_text is not None:
                by_text.log.remove()
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
            "" if by_text is None else by_text.stage.missing,
            anew,
        )

    def groups(self) -> IndexGroups:
        """Read the index once and return its groups of several documents, the leader of each first."""
        reader = restart_on_expiry(self._read)
        with self.interrupts.breakable():
            census = reader.census()
            members: dict[int, list[int]] = {}
            for place, leader in enumerate(self._leaders(census).tolist()):
                members.setdefault(leader, []).append(place)
            several = [
                census.keys.several(sorted(places, key=lambda place: (place != leader, place)))
                for leader, places in members.items()
                if len(places) > 1
            ]
        return IndexGroups(several, len(census), reader.unreadable)

    def _run_passes(self) -> None:
        first = self.passes
        while self.passes < max(_PASSES, first + 1):
            changes = self._plan()
            self.passes += 1
            if self.options.dry_run:
                return
            self.watch.check()
            if not changes:
                self.settled = True
                return
            self.journal.begin(changes, self.passes, self.counts)
            self._write(changes)
            # Free the memory before the next pass.
            del changes

    def _plan(self) -> Sequence[GroupChange]:
        """Read the index and return the changes to write."""
        reader = restart_on_expiry(self._read)
        with self.interrupts.breakable():
            census = reader.census()
            self.counts.read = len(census) + reader.unreadable
            self.counts.without_fingerprint = reader.unreadable
            self._report("grouping", len(census), 0.0)
            found = self._leaders(census)
            return list(plan(census, found, self.recipe.scheme, reader.reserved, self.counts))

    def _leaders(self, census: Census) -> Int64s:
        by_text = self.text_verdicts
        if by_text is None:
            return leaders(census, self.recipe.scheme, self.options)
        before = by_text.decided, by_text.unread
        try:
            return leaders(census, by_text.stage.scheme, self.options, by_text)
        finally:
            self.counts.by_text += by_text.decided - before[0]
            self.counts.by_signature += by_text.unread - before[1]

    def _read(self) -> CensusReader:
        given, recipe = self.options, self.recipe
        order, dates = self._order()
        reader = CensusReader(recipe.scheme, recipe.field, self.seal, given.scope, order, self.values)
        retry_unavailable(lambda: self.engine.refresh(self.index), given.backoff)
        scan = Scan(
            self.engine,
            self.index,
            backoff=given.backoff,
            keep_alive=self.pace.keep_alive,
            fields=reader.fields,
            values=dates,
        )
        place = scan.start()
        total, read = scan.total(place), 0
        for page in scan.pages(place):
            reader.add(page.hits)
            place, read = page.place, read + len(page.hits)
            self._report("reading", read, read / total if total else 0.0)
            with self.interrupts.breakable():
                self.pace.wait(len(page.hits))
            self.interrupts.check()
        scan.close(place)
        if reader.unordered:
            raise ConfigError(
                f"no document of {self.index!r} has {given.order.removeprefix('-')!r} in its _source, by "
                "which documents are to lead: choose another field for the order, or leave it out"
            )
        return reader

    def _order(self) -> tuple[str, Sequence[JSON]]:
        """Return the path of the values that documents lead by, and how to read those that are dates."""
        if not (named := self.options.order.removeprefix("-")):
            return "", ()
        several = list(self.engine.all_mappings(self.index).values())
        dates = date_doc_values(several, [named])
        return (named, dates) if dates else (source_of(several, named), ())

    def _write(self, changes: Sequence[GroupChange], before: int = 0) -> None:
        size = _BATCH if self.engine.can.seq_no else _ALONE
        for begin in range(0, len(changes), size):
            batch = changes[begin : begin + size]
            # A batch that was written must be counted, even at Ctrl-C.
            with self.interrupts.hold():
                self.writer.write(batch, self.counts)
                done = before + begin + len(batch)
                self.journal.save(done, self.passes, self.counts)
            self._report("writing", done, done / (before + len(changes)))
            self.watch.check_if_due()
            with self.interrupts.breakable():
                self.pace.wait(len(batch))

    def _report(self, step: str, documents: int, fraction: float) -> None:
        if self.report is not None:
            self.report(step, documents, min(1.0, fraction))
