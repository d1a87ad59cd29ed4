"""An index built anew beside the one in use, which it replaces once it is whole."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from shinglefold.checks import check_engine, check_is_text, expected
from shinglefold.contracts import Engine, IndexInfo
from shinglefold.errors import ConfigError, EngineError
from shinglefold.ingest.writing.summary import Summary
from shinglefold.recipe import stored_recipe

#: The name of an index that is built beside another: that one's, and the time.
_BESIDE = re.compile(r"(.+)-\d{20}")


def rebuild(engine: Engine, index: str, build: Callable[[str], Summary]) -> Summary:
    """Build an index under another name, and let it take the name once that has succeeded.

    Until then searches meet the old one, and a run that is cut short, or brings no document in, leaves it as
    it was. On servers the name is an alias of the new index afterwards.

    Args:
        build: fills the index whose name it gets, and makes it.

    Returns:
        The summary of ``build``; where the old index stays, it has ``discarded`` documents and made none.

    Raises:
        ConfigError: the name means several indices, or a data stream.
    """
    check_engine(engine)
    check_is_text("index", index)
    if not callable(build):
        raise expected("build", "what fills the index whose name it gets", build)
    if not engine.index_exists(index):
        return build(index)
    there = engine.indices(index)
    if any(index not in (info.name, *info.aliases) for info in there):
        raise ConfigError(
            f"{index!r} is a data stream, whose name no index can take: index into another name, or delete "
            "the stream first"
        )
    if len(there) > 1:
        names = ", ".join(info.name for info in there)
        raise ConfigError(f"{index!r} is an alias of several indices ({names}): name the one to recreate")
    beside = f"{index}-{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    try:
        summary = build(beside)
    except BaseException:
        _remove(engine, beside)
        raise
    if summary.stopped or not (summary.indexed or summary.dropped):
        _remove(engine, beside)
        counts = {**summary.counts, "discarded": summary.indexed}
        return replace(summary, index=index, made=False, counts=counts)
    try:
        engine.replace_index(index, beside)
    except EngineError as error:
        return replace(
            summary, index=beside, stopped=f"{error} (the new index is whole under the name {beside})"
        )
    return replace(summary, index=index)


def _remove(engine: Engine, index: str) -> None:
    with suppress(EngineError):
        engine.delete_index(index)


def left_behind(engine: Engine, infos: Iterable[IndexInfo]) -> Iterator[tuple[IndexInfo, str]]:
    """Yield of some indices those that were built beside another and have not taken its place, with its name.

    A ``rebuild`` that was killed leaves such an index. One that goes on looks the same, so that only the user
    can tell whether it may be deleted.
    """
    for info in infos:
        named = _BESIDE.fullmatch(info.name)
        if named is None or named[1] in info.aliases or not engine.index_exists(named[1]):
            continue
        with suppress(EngineError):
            # To ask for the other name may have ended a replacement that was cut short.
            if engine.index_exists(info.name) and stored_recipe(engine.mappings(info.name)) is not None:
                yield info, named[1]
