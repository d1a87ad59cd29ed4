"""How deep a search looks by itself: engines over-fetch for no ``k`` and no ``rank_window_size``."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

#: The greatest ``k`` and number of candidates that engines take.
_MOST = 10_000
_NEAREST = ("knn", "neural")
#: What ranks lists by their ranks, and so needs to know how long a list to look at.
_FUSING = ("rrf", "linear", "text_similarity_reranker")
_BESIDE = {"query", "knn", "retriever", "rank", "sub_searches"}
Limit = Literal["k", "rank_window_size"]


def limit_of(body: Mapping[str, Any]) -> Limit | None:
    """Return which number of a request bounds how many hits there are; None where none does."""
    if rank_window(body) is not None:
        return "rank_window_size"
    beside = [body.get("knn"), *_knn_of(body.get("retriever"))]
    return "k" if any(beside) or has_nearest(body.get("query")) else None


def has_nearest(query: object) -> bool:
    """Tell whether a query looks for nearest neighbours anywhere in it."""
    return any(
        _knn_spec(part[name]) is not None for part in _objects(query) for name in _NEAREST if name in part
    )


def has_chance(query: object) -> bool:
    """Tell whether a query ranks hits by chance, in each request by another: ``random_score`` has no seed."""
    scores = (part["random_score"] for part in _objects(query) if "random_score" in part)
    return any(isinstance(score, Mapping) and score.get("seed") is None for score in scores)


def _objects(query: object) -> Iterator[Mapping[Any, Any]]:
    """Yield the objects in a query, itself included."""
    waiting = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def reach(body: Mapping[str, Any]) -> int | None:
    """Return the ``k`` of a search that is for nearest neighbours and nothing else, so that it may be raised.

    Beside a query, a greater ``k`` would change the order of the first hits, as more of them get a score.
    """
    found = _alone(body)
    k = (found or {}).get("k")
    return k if isinstance(k, int) else None


def widened(body: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """Return a request whose numbers allow so many hits, as far as they may be raised."""
    if reach(body) is not None:
        return {name: _with_k(name, value, min(size, _MOST)) for name, value in body.items()}
    return body


def ranked_window(body: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """Return a request for ``size`` hits whose lists are looked at so far, where it leaves that open."""
    for name in ("retriever", "rank"):
        ((kind, spec),) = (body.get(name) or {"": {}}).items()
        if kind in _FUSING and "rank_window_size" not in spec:
            return {**body, name: {kind: {**spec, "rank_window_size": size}}}
    return body


def rank_window(body: Mapping[str, Any]) -> int | None:
    """Return how far lists that are fused or ranked again are looked at, where a request says so."""
    for name in ("retriever", "rank"):
        for spec in (body.get(name) or {}).values():
            size = spec.get("rank_window_size") if isinstance(spec, Mapping) else None
            if isinstance(size, int):
                return size
    return None


def _alone(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what says how to look for nearest neighbours, where nothing else finds hits."""
    if len(_BESIDE & body.keys()) != 1:
        return None
    if "knn" in body:
        return body["knn"] if isinstance(body["knn"], Mapping) else None
    for where in (body.get("query"), body.get("retriever")):
        if isinstance(where, Mapping) and len(where) == 1:
            ((name, given),) = where.items()
            if name in _NEAREST:
                return _knn_spec(given)
    return None


def _knn_spec(given: object) -> Mapping[str, Any] | None:
    """Return the part with ``k``: OpenSearch has it below the field, Elasticsearch beside it."""
    if not isinstance(given, Mapping):
        return None
    if "field" in given:
        return given
    inside = next(iter(given.values()), None)
    named = isinstance(inside, Mapping) and {"vector", "query_text", "query_image", "k"} & inside.keys()
    return inside if named and isinstance(inside, Mapping) else None


def _with_k(name: str, value: Any, k: int) -> Any:  # noqa: ANN401 - JSON
    if name == "knn":
        return _raise_k(value, k)
    if name not in ("query", "retriever"):
        return value
    ((kind, given),) = value.items()
    if "field" in given:
        return {kind: _raise_k(given, k)}
    return {kind: {field: _raise_k(spec, k) for field, spec in given.items()}}


def _raise_k(spec: Any, k: int) -> Any:  # noqa: ANN401 - JSON
    raised = {**spec, "k": max(k, spec["k"])}
    if isinstance(spec.get("num_candidates"), int):
        raised["num_candidates"] = max(raised["k"], spec["num_candidates"])
    return raised


def _knn_of(retriever: object) -> Iterator[object]:
    if isinstance(retriever, Mapping):
        yield retriever.get("knn")
