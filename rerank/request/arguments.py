"""What callers pass, taken as it is meant, or refused with the words that say what to pass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shinglefold.checks import check_engine, expected
from shinglefold.contracts import Search
from shinglefold.errors import ConfigError
from shinglefold.rerank.hits import Hit
from shinglefold.seal import check_seal


def hits_of(given: Sequence[Hit] | Mapping[str, Any]) -> Sequence[Hit]:
    """Return the hits of a whole response, and a list of hits as it is.

    Raises:
        ConfigError: it is neither.
    """
    hits: Any = given
    for _ in ("the response", "its hits"):
        hits = hits.get("hits") if isinstance(hits, Mapping) else hits
    if isinstance(hits, str | bytes) or not isinstance(hits, Sequence):
        raise ConfigError('not a list of hits; give the response of a search, or its ["hits"]["hits"]')
    if not (set(map(type, hits)) <= {dict} or all(isinstance(hit, Mapping) for hit in hits)):
        raise ConfigError("not a list of hits: each is an object as engines return it, with its _source")
    return hits


def check_means(engine: object, canonicalizer: object, seal: object, *, awaited: bool) -> None:
    """Check what a search is made with.

    Raises:
        ConfigError: the engine, the canonicalizer or the seal is something else.
    """
    check_engine(engine, awaited=awaited)
    # Its class is not asked for: who searches only need not load dictionaries and numpy.
    if canonicalizer is not None and not hasattr(canonicalizer, "references"):
        raise expected(
            "canonicalizer", "Canonicalizer.of(scheme) (from shinglefold.canon), or None", canonicalizer
        )
    check_seal(seal)


def check_several(name: str, several: object, what: str) -> None:
    """Raise ``ConfigError`` unless it is a list: one id or text would be taken for its letters."""
    if not isinstance(several, list | tuple):
        raise expected(name, f"a list of {what}", several)


def checked_searches(searches: Iterable[Search]) -> list[Search]:
    """Return several searches.

    Raises:
        ConfigError: one of them is no pair of an index and a body.
    """
    if isinstance(searches, Mapping | str):
        raise ConfigError("one search instead of a list of searches; give [(index, body), …]")
    if not isinstance(searches, Iterable):
        raise expected("searches", "a list of searches, [(index, body), …]", searches)
    found = list(searches)
    for place, one in enumerate(found):
        if isinstance(one, str | Mapping) or not isinstance(one, Sequence) or len(one) not in (2, 3):
            raise ConfigError(f"search {place} names no index; give each as (index, body)")
        if not isinstance(one[1], Mapping):
            raise ConfigError(f"search {place} has no body; give each as (index, body)")
        if one[0] is None and "pit" not in one[1]:
            raise ConfigError(
                f"search {place} names neither an index nor a point in time; give each as (index, body)"
            )
    return found
