"""Ways of a folded search through all requests it may make: windows, pages, passages, members, cursors."""

from collections.abc import Callable, Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ShinglefoldError
from shinglefold.rerank import FoldedSearch, FoldOptions

Way = Callable[..., JSON]
_BODY: JSON = {"query": {"match_all": {}}, "sort": [{"number": "asc"}], "size": 5}


def _search(**options: Any) -> Way:
    more = {name: options.pop(name) for name in ("from", "rescore", "sort") if name in options}

    def way(folded: FoldedSearch, index: str, **parameters: Any) -> JSON:
        body = {**_BODY, **more}
        return folded.search(index, body, FoldOptions.parse(options), **parameters)

    return way


def _together(folded: FoldedSearch, index: str, **parameters: Any) -> JSON:
    answers = folded.msearch([(index, _BODY), (index, {**_BODY, "size": 3})], **parameters)
    for answer in answers:
        if isinstance(answer, ShinglefoldError):
            raise answer
    partial = [answer for answer in answers if "partial" in answer["dedup"]]
    return partial[0] if partial else answers[0]


def _cursor(folded: FoldedSearch, index: str, **parameters: Any) -> JSON:
    answer: JSON = {}
    for page in folded.pages(index, _BODY, FoldOptions(window=7), **parameters):
        answer = page
        if "partial" in page["dedup"]:
            break
    return answer


#: By name.
WAYS: Mapping[str, Way] = {
    "one window": _search(),
    "several windows": _search(window=5, **{"from": 10}),
    "longer windows": _search(
        window=5,
        rescore={"window_size": 5, "query": {"rescore_query": {"match_all": {}}}},
        sort=[{"_score": "desc"}],
        **{"from": 10},
    ),
    "all there is": _search(linkage="connected", max_window=500),
    "shared keywords": _search(min_shared=1),
    "passages": _search(explain={"passages": True, "fields": ["body"]}),
    "members of their own": _search(inner_hits={"name": "own", "sort": [{"number": "desc"}]}),
    "several searches": _together,
    "a cursor": _cursor,
}
