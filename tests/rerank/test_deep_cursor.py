"""Cursors far down: they stay short, tell nothing, and still know what was shown on the first page."""

import math
from base64 import urlsafe_b64decode

import pytest
from support.hits import SCHEME, Spec, fingerprint_of, split

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.window.cursor import LONGEST, Cursor, seal, unseal

COUNT, PAGE = 1000, 80
KEY = b"a key that several processes share"
#: Every tenth page is a copy of one a few hundred ranks above it.
SPECS = [Spec(original=n - 700 if n >= 800 and n % 10 == 0 else n) for n in range(COUNT)]


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    with EmbeddedEngine(tmp_path_factory.mktemp("deep"), split) as engine:
        made = mappings(SCHEME)
        made["properties"]["rank"] = {"type": "integer"}
        engine.create_index("pages", made, {})
        engine.bulk(
            {
                "_index": "pages",
                "_id": f"secret-{rank}",
                "_source": {"rank": rank, "dedup": fingerprint_of(spec).to_field()},
            }
            for rank, spec in enumerate(SPECS)
        )
        engine.refresh("pages")
        yield FoldedSearch(engine, SCHEME, cursor_key=KEY)


def test_at_any_depth_a_cursor_is_short_and_no_group_comes_again(deep):
    body = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": PAGE, "_source": ["rank"]}
    shown, cursors = [], []
    for answer in deep.pages("pages", body):
        shown += [hit["_source"]["rank"] for hit in answer["hits"]["hits"]]
        cursors.append(answer["dedup"]["cursor"] or "")
        assert answer["dedup"]["groups"] + answer["dedup"]["folded"] == answer["dedup"]["window"]
    assert shown == [rank for rank, spec in enumerate(SPECS) if spec.original == rank]
    assert max(map(len, cursors)) < 16_000
    assert unseal(cursors[-2], KEY).old > 500
    assert answer["dedup"]["groups_total"] == {"value": len(shown), "relation": "eq"}


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
        seal(Cursor("a request", after=[text]), KEY)
    assert len(seal(Cursor("a request", after=[text[:100]]), KEY)) < LONGEST
