"""The engines' own collapse cases: documents with equal texts, and requests over them."""

import random
import string
from typing import Any

PROPERTIES = {
    "group": {"type": "integer"},
    "tag": {"type": "keyword"},
    "city": {"type": "keyword"},
    "price": {"type": "integer"},
    "place": {"type": "integer"},
    "title": {"type": "text"},
}
GROUPS, DOCUMENTS = 9, 40
PRICED = {"function_score": {"query": {"match_all": {}}, "field_value_factor": {"field": "price"}}}
PLACED = {"function_score": {"query": {"match_all": {}}, "field_value_factor": {"field": "place"}}}
DESCENDING = [{"price": "desc"}]


def documents() -> list[dict[str, Any]]:
    rng = random.Random(11)
    prices, places = (rng.sample(range(1, 1000), DOCUMENTS) for _ in range(2))
    return [
        {
            "group": number % GROUPS if number < 30 else rng.randrange(GROUPS),
            "tag": rng.choice("AB"),
            "city": rng.choice(["Kyiv", "Lviv", "Odesa"]),
            "price": prices[number],
            "place": places[number],
            "title": " ".join(["bridge"] * rng.randrange(1, 4) + ["over", "water"] * rng.randrange(3)),
        }
        for number in range(DOCUMENTS)
    ]


def text_of(group: int) -> str:
    rng = random.Random(group)
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=7)) for _ in range(40))


#: What a search may ask for, by name.
BODIES = {
    "any sort": {"sort": DESCENDING},
    "another sort": {"sort": [{"tag": "asc"}, {"place": "asc"}]},
    "scores": {"query": PRICED},
    "a query": {"query": {"bool": {"must": [PRICED], "filter": [{"term": {"tag": "A"}}]}}},
    "from": {"sort": DESCENDING, "from": 2},
    "from beyond the end": {"sort": DESCENDING, "from": 50},
    "size": {"sort": DESCENDING, "size": 3},
    "no hits": {"sort": DESCENDING, "size": 0},
    "no hits, no order": {"size": 0},
    "scores beside a sort": {"query": PRICED, "sort": [{"place": "asc"}], "track_scores": True, "size": 2},
    "a sort without scores": {"query": PRICED, "sort": [{"place": "asc"}]},
    "aggregations": {"sort": DESCENDING, "aggs": {"tags": {"terms": {"field": "tag"}}}},
    "a source filter": {"sort": DESCENDING, "_source": ["tag", "price"]},
    "versions": {"sort": DESCENDING, "version": True, "seq_no_primary_term": True, "_source": False},
    "a filter afterwards": {"sort": DESCENDING, "post_filter": {"term": {"tag": "B"}}},
    "totals counted up to a number": {"sort": DESCENDING, "track_total_hits": 10},
}
#: The inner hits that it may ask for.
INNER = {
    "an order and a size": {"name": "sub", "size": 2, "sort": [{"price": "asc"}]},
    "from": {"name": "sub", "from": 1, "size": 2, "sort": [{"price": "asc"}]},
    "no order": {"name": "sub"},
    "no hits": {"name": "sub", "size": 0},
    "fields": {"name": "sub", "fields": ["tag"], "sort": [{"price": "asc"}]},
    "doc values": {"name": "sub", "docvalue_fields": ["price"], "_source": False},
    "a source filter": {"name": "sub", "_source": ["city"]},
    "another source filter": {"name": "sub", "_source": {"excludes": ["_dedup", "t*"]}},
    "versions": {"name": "sub", "version": True, "sort": [{"price": "asc"}]},
    "numbers": {"name": "sub", "seq_no_primary_term": True, "sort": [{"price": "asc"}]},
    "scores beside a sort": {"name": "sub", "sort": [{"price": "asc"}], "track_scores": True},
    "a second level": {"name": "sub", "size": 3, "collapse": {"field": "city"}},
    "a second level in order": {"name": "sub", "size": 3, "sort": ["place"], "collapse": {"field": "city"}},
    "several": [
        {"name": "cheapest", "size": 2, "sort": [{"price": "asc"}]},
        {"name": "dearest", "size": 1, "sort": [{"price": "desc"}]},
    ],
}
#: The parameters of its address.
PARAMETERS = {
    "totals as numbers": {"rest_total_hits_as_int": True},
    "a preference": {"preference": "_local"},
    "one shard": {"routing": "7"},
    "scores over all shards": {"search_type": "dfs_query_then_fetch"},
    "missing indices": {"ignore_unavailable": True},
    "no partial answers": {"allow_partial_search_results": False},
    "no cache": {"request_cache": False},
    "open indices": {"expand_wildcards": "open"},
}
