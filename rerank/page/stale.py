"""Sets hits apart whose fingerprint is of another text than they have: each stands alone on its page."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.engine_calls import Steps
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.hits import stored_fingerprint
from shinglefold.rerank.page.fetch import fetch_hits
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import read_source_filter


def set_stale_apart(
    reading: WindowReader,
    groups: Sequence[Group],
    found: dict[int, JSON],
    index: str | None,
    prefer: Callable[[Sequence[int]], Sequence[int]],
) -> Steps[tuple[Sequence[Group], set[int]]]:
    """Return the groups of a page without stale hits, these as groups of their own, and the stale hits.

    Texts are compared only if the request shows them. A group whose representative is stale gets another.

    Args:
        found: the hits fetched for the page; those of other representatives are added.
        prefer: sorts hits by preference as representatives.

    Cost: a digest of each new text; one more request if a representative was not fetched.
    """
    stage = reading.stage
    shown = read_source_filter(reading.body.get("_source"))
    if stage is None or reading.options.verify != "text" or not all(map(shown.shows, stage.fields)):
        return groups, set()

    def stale_of(hits: Mapping[int, JSON]) -> set[int]:
        digests = {at: stored_fingerprint(reading.hits[at], reading.field).get("digest") for at in hits}
        return {
            at
            for at, hit in hits.items()
            if (digest := digests[at]) and stage.is_stale(hit.get("_source") or {}, str(digest[0]))
        }

    stale = stale_of(found)
    asked: set[int] = set()
    while True:
        apart = sorted(_apart(groups, stale, prefer), key=lambda group: group.members[0])
        new = [one.representative for one in apart if one.representative not in found.keys() | asked]
        if not stale or not new:
            return (apart if stale else groups), stale
        asked |= set(new)
        more = yield from fetch_hits(reading, new, index)
        found |= more
        stale |= stale_of(more)


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
