"""Sets hits apart whose fingerprint is of another text than they have: each stands alone on its page."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.engine_calls import Steps
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.hits import stored_fingerprint
from shinglefold.rerank.page.fetch import fetch_fields, fetch_hits
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import read_source_filter

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage


def set_stale_apart(
    reading: WindowReader,
    groups: Sequence[Group],
    found: dict[int, JSON],
    index: str | None,
    prefer: Callable[[Sequence[int]], Sequence[int]],
) -> Steps[tuple[Sequence[Group], set[int]]]:
    """Return the groups of a page without stale hits, these as groups of their own, and the stale hits.

    A hit that is in no group with another one is not examined. A group whose representative is stale gets
    another.

    Args:
        found: the hits fetched for the page; those of other representatives are added.
        prefer: sorts hits by preference as representatives.

    Cost: a digest of each new text; one more request if the request hides the texts, or if a representative
    was not fetched.
    """
    stage = reading.stage
    if stage is None or stage.signed is None or reading.options.verify != "text":
        return groups, set()
    stale = yield from _stale(reading, stage, _in_groups(groups, found), found, index)
    asked: set[int] = set()
    while stale:
        apart = sorted(_apart(groups, stale, prefer), key=lambda group: group.members[0])
        new = [one.representative for one in apart if one.representative not in found.keys() | asked]
        if not new:
            return apart, stale
        asked |= set(new)
        found |= yield from fetch_hits(reading, new, index)
        stale |= yield from _stale(reading, stage, _in_groups(apart, set(new) & found.keys()), found, index)
    return groups, stale


def _in_groups(groups: Sequence[Group], places: Container[int]) -> list[int]:
    """Return those of some hits that are in a group with another one: the others hide nothing."""
    return [at for group in groups if len(group.members) > 1 for at in group.members if at in places]


def _stale(
    reading: WindowReader,
    stage: "TextStage",
    places: Sequence[int],
    found: Mapping[int, JSON],
    index: str | None,
) -> Steps[set[int]]:
    """Return those of some hits whose fingerprint is of another text; read texts that the request hides."""
    shown = read_source_filter(reading.body.get("_source"))
    if all(map(shown.shows, stage.sources)):
        sources: Mapping[int, JSON] = {at: found[at].get("_source") or {} for at in places}
    else:
        sources = (yield from fetch_fields(reading, places, index, stage.sources)) if places else {}
    digests = {at: stored_fingerprint(reading.hits[at], reading.field).get("digest") for at in sources}
    return stage.stale(
        {at: (source, str(digest[0])) for at, source in sources.items() if (digest := digests[at])}
    )


def _apart(
    groups: Sequence[Group], stale: set[int], prefer: Callable[[Sequence[int]], Sequence[int]]
) -> Iterator[Group]:
    for group in groups:
        rest = tuple(at for at in group.members if at not in stale)
        if rest:
            shown = group.representative
            yield Group(prefer(rest)[0] if shown in stale else shown, rest)
        for at in group.members:
            if at in stale:
                yield Group(at, (at,))
