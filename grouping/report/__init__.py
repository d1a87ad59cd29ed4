"""What the groups of an index look like: by size, the largest, the newest, and where copies are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError
from shinglefold.grouping.report.counts import GroupReport, GroupTally, ReportFields
from shinglefold.grouping.scope_values import asked_dates
from shinglefold.maintenance.scan import DEFAULT_BACKOFF, Scan, restart_on_expiry
from shinglefold.model.recipe import Recipe
from shinglefold.options.remedies import chain, suggest
from shinglefold.options.validation import check_engine, check_str, check_type
from shinglefold.rerank.request.field_check import source_of
from shinglefold.runtime.backoff import retry_unavailable

__all__ = ["GroupReport", "ReportFields", "make_report"]


def make_report(
    engine: Engine,
    index: str,
    names: ReportFields | None = None,
    *,
    listed: int = 10,
    progress: Callable[[int, float], None] | None = None,
) -> GroupReport:
    """Read the numbers of groups of all documents and count; exact on every engine.

    Args:
        names: of the fields with host, date and title; those that are most usual where none is named.
        listed: groups, hosts and the like to list at most.

    Raises:
        ConfigError: the index was not made for fingerprints, or no document has the number
            of a group.
        EngineError: the engine can't be asked.

    Cost: a scan that reads a few fields; some 300 bytes a group.
    """
    check_engine(engine)
    check_str("index", index)
    check_type("names", names, ReportFields, "Names(…)", optional=True)
    recipe = Recipe.of(engine.mappings(index), index)
    several = list(engine.all_mappings(index).values())
    asked = _told_in(several, names or ReportFields())
    dates = asked_dates(several, asked.dates)
    tally = restart_on_expiry(
        lambda: _tallied(engine, index, GroupTally(recipe.field, asked), dates, progress)
    )
    if not tally.grouped:
        first = [] if recipe.groups else [suggest("setup", index, groups=True)]
        raise ConfigError(
            f"no document of {index!r} has the number of its group; number them: "
            f"{chain([*first, suggest('regroup', index)])}"
        )
    return tally.report(index, listed)


def _tallied(
    engine: Engine,
    index: str,
    tally: GroupTally,
    dates: Sequence[JSON],
    progress: Callable[[int, float], None] | None,
) -> GroupTally:
    retry_unavailable(lambda: engine.refresh(index), DEFAULT_BACKOFF)
    scan = Scan(engine, index, fields=tally.fields, values=dates)
    place = scan.start()
    total, read = scan.total(place), 0
    for page in scan.pages(place):
        tally.add(page.hits)
        place, read = page.place, read + len(page.hits)
        if progress is not None:
            progress(read, read / total)
    scan.close(place)
    return tally


def _told_in(several: Sequence[Mapping[str, Any]], names: ReportFields) -> ReportFields:
    """Return where documents have the values of fields, for one that is a multi-field."""
    given = names.host, names.date, names.title
    return ReportFields(*(name and source_of(several, name) for name in given))
