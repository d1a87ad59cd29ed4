"""The page of the groups of an index: by size, host, language and month, the largest and the newest."""

from typing import Any

from shinglefold.gateway.pages.parameters import PageParameters
from shinglefold.gateway.pages.shared import Shared
from shinglefold.grouping.report import GroupReport, ReportFields, make_report
from shinglefold.rerank.index_fields import check_fields

PARAMETERS = ("host_field", "date_field", "title_field", "most")
_MOST, _LIMIT = 10, 100


def groups_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return a report of the groups.

    Raises:
        ConfigError: the index has no group numbers, or no such field.

    Cost: a scan of all documents that reads a few fields; kept for a minute for the same parameters.
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
    made: GroupReport = shared.recent.get(
        ("groups", names, most), lambda: make_report(index.engine, index.name, names, listed=most)
    )
    return {
        "fields": {"host": names.host, "date": names.date, "title": names.title},
        "most": most,
        "report": made.to_json(),
        "in_shared": made.in_shared,
    }
