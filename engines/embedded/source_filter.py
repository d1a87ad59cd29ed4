"""``_source`` of a search body, checked."""

from collections.abc import Mapping

from shinglefold.engines.embedded.options import checked, strings
from shinglefold.source_filter import SourceFilter


def read_source_filter(given: object) -> SourceFilter:
    """Read the ``_source`` of a search body.

    Raises:
        UnsupportedQuery: it is not valid.
    """
    if isinstance(given, bool):
        return SourceFilter(wanted=given)
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings("_source", given))
    checked("_source", given, ("includes", "excludes"))
    includes, excludes = (
        strings(f"_source {name}", given.get(name, ())) for name in ("includes", "excludes")
    )
    return SourceFilter(True, includes, excludes)
