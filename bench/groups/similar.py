"""Copies found anywhere: of one document, and of many at once, beside so many stored ones."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from time import perf_counter, process_time

from bench.groups.stored import INDEX, SCHEME, count, engines, fill, prints
from bench.table import Row, percentiles
from shinglefold.contracts.engine import Engine
from shinglefold.model.values import Fingerprint
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch

_ASKED, _WARM, _BATCH, _BATCHES = 200, 40, 100, 10


def measure() -> list[Row]:
    """Return milliseconds of a look-up and look-ups a second, after asserting what they find."""
    with engines() as places:
        return [row for name, engine in places for row in _measured(name, engine)]


def _measured(name: str, engine: Engine) -> Iterator[Row]:
    stored = count()
    fill(engine, INDEX, stored)
    search = SimilarSearch(engine, SCHEME)
    groups = dict(islice(((str(at), group) for at, (group, _) in enumerate(prints(stored))), stored))
    rng = random.Random(1)
    ids = [str(rng.randrange(stored)) for _ in range(_ASKED + _WARM)]
    _assert_found(search, ids[:_WARM], groups)
    note = f"beside {stored:,} documents, a fifth of them copies; {name}"
    some = min(stored, 10_000)
    made = [made for _, made in islice(prints(some), 0, some, max(1, some // (_BATCH * _BATCHES)))]
    for what, asked in (("an id", ids[_WARM:]), ("a fingerprint", made[:_ASKED])):
        yield from _singles(search, what, asked, note)
    yield from _batches(search, made, note)


def _assert_found(search: SimilarSearch, ids: Sequence[str], groups: dict[str, int]) -> None:
    for id_ in ids:
        found = search.find(INDEX, id_, SimilarOptions(size=1000))
        own = {other for other, group in groups.items() if group == groups[id_]} - {id_}
        # Copies of one original are less like each other than each is like the original.
        assert {match.id for match in found.matches} <= own
        assert str(groups[id_]) == id_ or str(groups[id_]) in {match.id for match in found.matches}


def _singles(
    search: SimilarSearch, what: str, asked: Sequence[str | Fingerprint], note: str
) -> Iterator[Row]:
    times, own = [], process_time()
    for one in asked:
        start = perf_counter()
        search.find(INDEX, one)
        times.append(perf_counter() - start)
    spent = (process_time() - own) / len(asked) * 1e3
    yield from percentiles(f"similar by {what}", times, (50, 95), note)
    yield Row(f"similar by {what}, CPU of the caller", spent, "ms", note)


def _batches(search: SimilarSearch, made: Sequence[Fingerprint], note: str) -> Iterator[Row]:
    options = SimilarOptions(window=100)
    start, own = perf_counter(), process_time()
    for batch in range(_BATCHES):
        found = search.look_up(INDEX, made[batch * _BATCH : (batch + 1) * _BATCH], options)
        assert all(one.matches and one.matches[0].same_text for one in found)
    asked = _BATCH * _BATCHES
    yield Row("look-ups in batches of 100", asked / (perf_counter() - start), "a second", note)
    spent = (process_time() - own) / asked * 1e3
    yield Row("look-up in a batch, CPU of the caller", spent, "ms", note)
