"""A proxy before a cluster cuts, delays, truncates and refuses: every run ends with books that add up."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest
from support.maintenance import adds_up
from support.servers.faulty import BROKEN, CUT, HALF, LATE, LOST, relay

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.errors import EngineError
from shinglefold.ingest import index_documents
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.retry import retry
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.runtime.backoff import Backoff

#: Many tries, soon after each other: what is tested is what happens in between, not patience.
QUICK = Backoff(retries=12, first=0.05, most=0.5)
SEED = 1


@pytest.fixture
def proxy(whole):
    with relay(whole.url, of="") as made:
        yield made


@pytest.fixture
def through(proxy, whole) -> Iterator[Engine]:
    with closing(
        open_engine(Connection((proxy.url,), product=whole.kind.product, timeout=5, retries=5))
    ) as engine:
        yield engine


def test_documents_are_indexed_all_the_same(through, proxy, index, pipeline, documents, sound, tmp_path):
    proxy.weather(SEED, 0.3)
    path = tmp_path / "failed.jsonl"
    summary = index_documents(
        through, index, documents, pipeline, workers=1, backoff=QUICK, dead_letters=path
    )
    assert proxy.spoilt
    assert summary.read == summary.indexed + summary.failed == len(documents)
    proxy.weather(SEED, 0)
    if summary.failed:
        assert path.exists()
        assert retry(through, index, path, pipeline, workers=1).failed == 0
    sound(index)


def test_an_index_is_backfilled_all_the_same(through, proxy, unsigned, pipeline, sound):
    proxy.weather(SEED, 0.2)
    summary = _patiently(
        lambda: backfill(through, unsigned, pipeline, BackfillOptions(workers=1, backoff=QUICK))
    )
    assert proxy.spoilt
    assert adds_up(summary.counts)
    proxy.weather(SEED, 0)
    if summary.stopped:
        summary = backfill(through, unsigned, pipeline, BackfillOptions(workers=1))
    assert (summary.stopped, summary.remaining, summary.counts.failed) == ("", 0, 0)
    sound(unsigned)


def test_letters_are_tried_again_all_the_same(through, proxy, index, pipeline, documents, letters, sound):
    proxy.weather(SEED, 0.3)
    summary = _patiently(lambda: retry(through, index, letters, pipeline, workers=1, backoff=QUICK))
    assert proxy.spoilt
    proxy.weather(SEED, 0)
    # A run may also stop when all is done but made visible: then no letter is left.
    settled = summary.indexed == len(documents)
    assert letters.exists() != settled
    if letters.exists():
        assert retry(through, index, letters, pipeline, workers=1).failed == 0
    sound(index)


def test_a_cursor_shows_no_group_twice_and_ends_only_at_the_end(
    through, proxy, admin, index, pipeline, documents, scheme
):
    twice = [*documents[:300], *({**one, "id": f"{one['id']}-again"} for one in documents[:300])]
    index_documents(admin, index, twice, pipeline, workers=1)
    expected = _walk(FoldedSearch(admin, scheme, tiebreaker="id"), index)
    search = FoldedSearch(through, scheme, tiebreaker="id")
    proxy.weather(SEED, 0.3)
    assert _walk(search, index) == expected
    assert proxy.spoilt


@pytest.mark.parametrize("fault", [429, 503, CUT, LOST, HALF, BROKEN, LATE])
def test_one_fault_for_good_ends_with_a_clear_error(proxy, whole, index, scheme, fault):
    given = Connection((proxy.url,), product=whole.kind.product, timeout=0.5, retries=1)
    with closing(open_engine(given)) as engine:
        proxy.weather(1, 1.0, [fault])
        with pytest.raises(EngineError, match=r"127\.0\.0\.1") as caught:
            FoldedSearch(engine, scheme, tiebreaker="id").search(index, {})
        assert str(caught.value).endswith(".")


def _patiently(work):
    """Begin again where the first request of all was spoilt: then nothing was done, and that is an error."""
    for _ in range(20):
        try:
            return work()
        except EngineError:
            continue
    raise AssertionError("the weather never lets anything through")


def _walk(search, index):
    """Walk by cursor; a page that fails is asked for again with the cursor of the page before."""
    body = {"query": {"match_all": {}}, "sort": [{"id": "asc"}], "size": 20, "_source": False}
    shown: list[str] = []
    cursor: str | bool = True
    while cursor:
        answer = _patiently(partial(search.search, index, body, FoldOptions(cursor=cursor)))
        shown += [hit["_id"] for hit in answer["hits"]["hits"]]
        cursor = answer["dedup"]["cursor"] or False
    return shown
