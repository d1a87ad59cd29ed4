"""A node is killed in the midst of work and comes back: nothing is lost, no group is shown twice."""

import time
from contextlib import suppress

import pytest
from support.maintenance import adds_up

from shinglefold.errors import EngineError
from shinglefold.ingest import index_documents
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.retry import retry
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.runtime.backoff import Backoff

BODY = {"query": {"match_all": {}}, "sort": [{"id": "asc"}], "size": 20, "_source": False}
PATIENCE = 200
#: As long as a node may take to come back on a busy machine: the only one that is asked is waited for.
LONG = Backoff(retries=40, first=0.5, most=5.0)
#: A write needs each of them. What reads has no use for the one that was elected, and letters are written as
#: documents are. A node with primaries is killed on a cluster of every product.
PRIMARY = pytest.param("primary", marks=pytest.mark.every_cluster)


@pytest.mark.parametrize("role", ["asked", "primary", "elected"])
def test_while_documents_are_indexed(mishap, index, pipeline, documents, sound, role):
    disturbed = mishap(role, index)
    summary = index_documents(disturbed.at("bulk"), index, documents, pipeline, workers=1, backoff=LONG)
    disturbed.check_it_happened()
    assert (summary.read, summary.indexed, summary.failed, summary.stopped) == (len(documents),) * 2 + (0, "")
    sound(index)


@pytest.mark.parametrize("role", ["asked", PRIMARY])
def test_while_an_index_is_backfilled(mishap, unsigned, pipeline, documents, sound, role):
    disturbed = mishap(role, unsigned)
    summary = backfill(disturbed.at("bulk"), unsigned, pipeline, BackfillOptions(workers=1, backoff=LONG))
    disturbed.check_it_happened()
    assert (summary.stopped, summary.remaining, summary.counts.failed) == ("", 0, 0)
    assert adds_up(summary.counts)
    sound(unsigned)


def test_while_letters_are_tried_again(mishap, index, pipeline, documents, letters, sound):
    disturbed = mishap("primary", index)
    summary = retry(disturbed.at("bulk"), index, letters, pipeline, workers=1, backoff=LONG)
    disturbed.check_it_happened()
    assert (summary.read, summary.indexed, summary.failed, summary.stopped) == (len(documents),) * 2 + (0, "")
    assert not letters.exists()
    sound(index)


@pytest.fixture
def copies(admin, index, pipeline, documents, scheme) -> list[str]:
    """Every page twice in the index, and the groups of it in order."""
    twice = [*documents[:400], *({**one, "id": f"{one['id']}-again"} for one in documents[:400])]
    index_documents(admin, index, twice, pipeline, workers=1)
    search = FoldedSearch(admin, scheme, tiebreaker="id")
    shown = [hit["_id"] for page in search.pages(index, BODY) for hit in page["hits"]["hits"]]
    assert len(shown) == len(set(shown)) < len(twice)
    return shown


@pytest.mark.parametrize("role", ["asked", PRIMARY])
def test_while_a_cursor_walks_that_wants_whole_answers(mishap, index, copies, scheme, role):
    disturbed = mishap(role, index)
    search = FoldedSearch(disturbed.at("search", 6), scheme, tiebreaker="id")
    shown: list[str] = []
    cursor: str | bool = True
    end = time.monotonic() + PATIENCE
    while cursor:
        try:
            answer = search.search(
                index, BODY, FoldOptions(cursor=cursor), allow_partial_search_results=False
            )
        except EngineError:
            # The page is asked for again with the same cursor, until the server can give it.
            assert time.monotonic() < end
            time.sleep(0.5)
            continue
        shown += [hit["_id"] for hit in answer["hits"]["hits"]]
        cursor = answer["dedup"]["cursor"] or False
    disturbed.check_it_happened()
    assert shown == copies


def test_while_a_cursor_walks_that_takes_what_it_gets(mishap, index, copies, scheme):
    disturbed = mishap("primary", index)
    search = FoldedSearch(disturbed.at("search", 6), scheme, tiebreaker="id")
    shown: list[str] = []
    partial = False
    with suppress(EngineError):
        for page in search.pages(index, BODY):
            shown += [hit["_id"] for hit in page["hits"]["hits"]]
            partial = partial or "partial" in page["dedup"] or page["dedup"]["mode"] == "unfolded"
            # What is missing or not folded is said on the page itself; until then all is there, in order.
            assert partial or shown == copies[: len(shown)]
        assert partial or shown == copies
    disturbed.check_it_happened()
    assert len(shown) == len(set(shown))
