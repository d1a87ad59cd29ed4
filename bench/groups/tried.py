"""Ways to count the members of a page that were tried, each beside the engine's own collapse without any."""

from collections.abc import Mapping
from typing import Any

from bench.groups.stored import INDEX
from shinglefold.contracts.engine import JSON, Engine

_GROUP = "dedup.group"
_TOTAL = {"total": {"cardinality": {"field": _GROUP, "precision_threshold": 3000}}}


def pages(engine: Engine) -> Mapping[str, Any]:
    """Return the ways by name; each takes the body of a page."""

    def search(body: JSON, **more: Any) -> JSON:  # noqa: ANN401 - JSON
        return engine.search(INDEX, {**body, "collapse": {"field": _GROUP}, **more})

    def again(body: JSON, answer: JSON) -> JSON:
        groups = [hit["fields"][_GROUP][0] for hit in answer["hits"]["hits"]]
        query = {"bool": {"filter": [{"terms": {_GROUP: groups}}, body["query"]]}}
        counted = {"members": {"terms": {"field": _GROUP, "size": len(groups)}}}
        return engine.search(INDEX, {"query": query, "size": 0, "aggs": counted})

    def hidden(body: JSON) -> JSON:
        inner = {"name": "members", "size": 0, "_source": False}
        return engine.search(INDEX, {**body, "collapse": {"field": _GROUP, "inner_hits": inner}})

    def shared(body: JSON) -> JSON:
        return search(body, aggs={"members": {"terms": {"field": _GROUP, "size": 1000, "min_doc_count": 2}}})

    return {
        "tried: inner hits of size 0": hidden,
        "tried: total beside the page": lambda body: search(body, aggs=_TOTAL),
        "tried: total beside the page, members by a second request": lambda body: again(
            body, search(body, aggs=_TOTAL)
        ),
        "tried: members by a second request, no total": lambda body: again(body, search(body)),
        "tried: shared groups beside the page": shared,
    }
