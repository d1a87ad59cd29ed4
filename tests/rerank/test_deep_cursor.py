"""Cursors far down: they stay short, tell nothing, and still know what was shown on the first page."""

import itertools
import math
from base64 import urlsafe_b64decode

import pytest
from support.hits import SCHEME, Spec, fingerprint_of, split

from shinglefold.contracts.engine import Capabilities
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.page.cursor import LONGEST, Cursor, decrypt_cursor, encrypt_cursor

COUNT, PAGE = 1000, 80
KEY = b"a key that several processes share"
#: Every tenth page is a copy of one a few hundred ranks above it.
SPECS = [Spec(original=n - 700 if n >= 800 and n % 10 == 0 else n) for n in range(COUNT)]

FIRST = [rank for rank, spec in enumerate(SPECS) if spec.original == rank]
BODY = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": PAGE, "_source": ["rank"]}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    with EmbeddedEngine(tmp_path_factory.mktemp("deep"), split) as engine:
        made = mappings(SCHEME)
        made["properties"]["rank"] = {"type": "integer"}
        engine.create_index("pages", made, {})
        engine.bulk(
            {
                "_index": "pages",
                "_id": f"secret-{rank}",
                "_source": {"rank": rank, "_dedup": fingerprint_of(spec).to_field()},
            }
            for rank, spec in enumerate(SPECS)
        )
        engine.refresh("pages")
        yield engine


@pytest.fixture(scope="module")
def deep(stored):
    return FoldedSearch(stored, SCHEME, cursor_key=KEY)


def test_at_any_depth_a_cursor_is_short_and_no_group_comes_again(deep):
    shown, cursors = [], []
    for answer in deep.pages("pages", BODY):
        shown += [hit["_source"]["rank"] for hit in answer["hits"]["hits"]]
        cursors.append(answer["dedup"]["cursor"] or "")
        assert answer["dedup"]["groups"] + answer["dedup"]["folded"] == answer["dedup"]["window"]
    assert shown == FIRST
    assert max(map(len, cursors)) < 16_000
    assert decrypt_cursor(cursors[-2], KEY).old > 500
    assert answer["dedup"]["groups_total"] == {"value": len(shown), "relation": "eq"}


def _answers(deep, *, window=PAGE, pages=1):
    """The first pages, each of the hits of one block as long as nothing folds."""
    found = deep.pages("pages", BODY, FoldOptions(window=window))
    return [next(found) for _ in range(pages)]


def _next(deep, cursor, *, window=PAGE, **more):
    body = {**BODY, "ext": {"dedup": {"cursor": cursor, **more}}}
    return deep.search("pages", body, FoldOptions(window=window))


def _ranks(answer):
    return [hit["_source"]["rank"] for hit in answer["hits"]["hits"]]


def test_a_page_that_ends_with_its_block_has_the_next_one_read_and_no_more(deep):
    answers = _answers(deep, pages=3)
    assert [answer["dedup"]["window"] for answer in answers] == [PAGE] * 3
    assert [_ranks(answer)[0] for answer in answers] == [0, PAGE, 2 * PAGE]


@pytest.mark.parametrize("window", [PAGE, 2 * PAGE])
def test_what_was_found_again_ends_where_it_was_forgotten(deep, window):
    (first,) = _answers(deep, window=window)
    forgotten = decrypt_cursor(first["dedup"]["cursor"], KEY).without_oldest(PAGE)
    assert (forgotten.old, forgotten.shown) == (PAGE, ())
    assert _ranks(_next(deep, encrypt_cursor(forgotten, KEY), window=window))[0] == PAGE


def test_a_renewed_cursor_counts_from_the_first_hit_and_forgets_none_of_the_old_ones(deep):
    *_, third = _answers(deep, pages=3)
    renewed = _next(deep, third["dedup"]["cursor"], renew=True)
    assert _ranks(renewed) == [*range(3 * PAGE, 4 * PAGE)]
    assert decrypt_cursor(renewed["dedup"]["cursor"], KEY).behind == 4 * PAGE
    shown = ({"mark": "a", "rank": 3, "fields": {}},)
    assert Cursor("a request", old=500, shown=shown).without_oldest(1).old == 500


def test_a_renewed_cursor_shows_what_came_meanwhile(stored, deep):
    (first,) = _answers(deep)
    new = {"rank": -1, "_dedup": fingerprint_of(Spec(original=COUNT)).to_field()}
    stored.bulk([{"_index": "pages", "_id": "new", "_source": new}])
    stored.refresh("pages")
    try:
        assert _ranks(_next(deep, first["dedup"]["cursor"]))[0] == PAGE
        assert _ranks(_next(deep, first["dedup"]["cursor"], renew=True))[:2] == [-1, PAGE]
    finally:
        stored.bulk([{"_op_type": "delete", "_index": "pages", "_id": "new"}])
        stored.refresh("pages")


class Renaming:
    """A real engine that gives a point in time another name with each answer; the old one is good no more."""

    can = Capabilities()

    def __init__(self, engine):
        self.engine, self.known, self._names = engine, {}, map(str, itertools.count())

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def open_pit(self, *given):
        return self._named(self.engine.open_pit(*given))

    def search(self, index, body, *more):
        if "pit" not in body:
            return self.engine.search(index, body, *more)
        pit = self.known.pop(body["pit"]["id"])
        answer = self.engine.search(index, {**body, "pit": {**body["pit"], "id": pit}}, *more)
        return {**answer, "pit_id": self._named(pit)}

    def close_pit(self, name):
        self.engine.close_pit(self.known.pop(name))

    def _named(self, pit):
        name = next(self._names)
        self.known[name] = pit
        return name


@pytest.mark.parametrize("window", [PAGE, 25])
def test_a_point_in_time_is_read_by_the_name_that_the_last_answer_gave_it(stored, window):
    renaming = Renaming(stored)
    folded = FoldedSearch(renaming, SCHEME, cursor_key=KEY)
    answers = [*folded.pages("pages", BODY, FoldOptions(window=window))]
    assert [rank for answer in answers for rank in _ranks(answer)] == FIRST
    assert decrypt_cursor(answers[-2]["dedup"]["cursor"], KEY).old
    assert not renaming.known


def test_nothing_can_be_read_in_a_cursor(deep):
    body = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 20}
    cursor = next(deep.pages("pages", body))["dedup"]["cursor"]
    raw = urlsafe_b64decode(cursor)
    assert b"secret" not in raw
    assert b"dedup" not in raw
    counts = [raw.count(byte) for byte in range(256)]
    entropy = -sum(n / len(raw) * math.log2(n / len(raw)) for n in counts if n)
    assert entropy > 7.5
    assert next(deep.pages("pages", body))["dedup"]["cursor"] != cursor


def test_a_sort_value_too_long_for_a_cursor_is_told():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 12_000)))
    with pytest.raises(ConfigError, match="shorter field"):
        encrypt_cursor(Cursor("a request", after=[text]), KEY)
    assert len(encrypt_cursor(Cursor("a request", after=[text[:100]]), KEY)) < LONGEST
