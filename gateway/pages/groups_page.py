"""The page of the groups of an index: by size, host, language and month, the largest and the newest."""

from dataclasses import replace
from typing import Any

from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.grouping.report import GroupReport, ReportFields, make_report
from shinglefold.rerank.index_fields import check_fields

PARAMETERS = ("host_field", "date_field", "title_field", "most")
_MOST, _LIMIT = 10, 100


def groups_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return a report of the groups.

    Cost: a scan of all documents that reads a few fields, at most once a minute for the same fields.
    """
    index, usual = shared.index, ReportFields()
    names = ReportFields(
        given.word("host_field"), given.word("date_field"), given.word("title_field", usual.title)
    )
    most = given.count("most", _MOST, 1, _LIMIT)
    # The default fields may be missing.
    named = sorted({names.host, names.date, names.title} - {"", usual.title})
    if named:
        check_fields(index.engine.all_mappings(index.name).values(), index.name, named, "groups")
    whole: GroupReport = shared.once(
        ("groups", names), lambda: make_report(index.engine, index.name, names, listed=_LIMIT)
    )
    made = _with_most(whole, most)
    return {
        "fields": {"host": names.host, "date": names.date, "title": names.title},
        "most": most,
        "report": made.to_json(),
        "in_shared": made.in_shared,
    }


def _with_most(whole: GroupReport, most: int) -> GroupReport:
    """Return a report with fewer groups, hosts and languages."""
    left_out = {kind: max(0, len(getattr(whole, kind)) - most) for kind in ("hosts", "languages")}
    return replace(
        whole,
        largest=whole.largest[:most],
        newest=whole.newest[:most],
        hosts=whole.hosts[:most],
        languages=whole.languages[:most],
        more={kind: count + left_out.get(kind, 0) for kind, count in whole.more.items()},
    )
