"""The page of a search: the engine's own order beside the folded one, and why hits are folded."""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.api.text_query import default_fields, search_body
from shinglefold.gateway.pages.documents import FOUND, document_json, passage_pieces, snippet
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.rerank import duplicates
from shinglefold.rerank.explanation import matched_passages
from shinglefold.rerank.hits import identity
from shinglefold.rerank.index_fields import language_by_recipe

PARAMETERS = ("q", "from", "size", "representative", "scope", "min_resemblance")
#: Hits on a page by default and at most, and the most that are left out before it.
_SIZE, _MOST, _DEEPEST = 10, 50, 9_000
#: The hits whose places in the engine's own order are read, by default and at most.
_RANKED_AT_FIRST, _RANKED = 200, 1_000
#: Of each hit, the members whose passages are shown; how many of each, and the least words of another one.
_MEMBERS, _PASSAGES, _LEAST = 5, 2, 10

Hit = Mapping[str, Any]


def search_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return a search before and after folding; ``answer`` is None without words to search for."""
    words = given.word("q")
    start, size = given.count("from", 0, 0, _DEEPEST), given.count("size", _SIZE, 1, _MOST)
    dedup = {
        "representative": given.word("representative"),
        "scope": [one.strip() for one in given.word("scope").split(",") if one.strip()],
        "min_resemblance": given.number("min_resemblance", 0.0, 0.0, 1.0),
    }
    options = {name: value for name, value in dedup.items() if value}
    return {
        "query": words,
        "from": start,
        "size": size,
        "options": options,
        "answer": _answer(shared.index, words, start, size, options) if words else None,
    }


def _answer(
    index: FoldedIndex, words: str, start: int, size: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    body = search_body(
        words, default_fields(index.recipe), index.recipe.field, size=size, start=start, marks=FOUND
    )
    # Members are attached in their order, so that these include all that come before the end of this page.
    wanted = {"members": {"size": max(size, 5)}, "explain": True, **options}
    whole = {"excludes": [index.recipe.field]}
    after = index.search({**body, "_source": whole, "ext": {"dedup": wanted}})
    before = index.search({**body, "ext": {"dedup": False}})
    ranked = index.search(
        {
            "query": body["query"],
            "size": min(_RANKED, max(_RANKED_AT_FIRST, start + size)),
            "_source": False,
            "ext": {"dedup": False},
        }
    )
    ranks = {identity(hit): rank for rank, hit in enumerate(ranked["hits"]["hits"], 1)}
    needed = options.get("min_resemblance", index.scheme.decision.min_resemblance)
    return _Comparison(index, after, ranks, needed).to_json(before["hits"]["hits"], start)


class _Comparison:
    """A folded page beside the engine's own order."""

    def __init__(
        self, index: FoldedIndex, after: Mapping[str, Any], ranks: Mapping[Any, int], needed: float
    ) -> None:
        self._index, self._after, self._ranks = index, after, ranks
        self._fields = index.recipe.fields
        groups = after["dedup"].get("explain") or ()
        self._needed = needed
        self._reasons = {identity(one): one for group in groups for one in group["members"]}

    def to_json(self, before: Sequence[Hit], start: int) -> dict[str, Any]:
        """Return both orders, and the totals of both."""
        shown = self._after["hits"]["hits"]
        dedup = self._after["dedup"]
        places: dict[Any, tuple[int, bool]] = {}
        for place, hit in enumerate(shown, start + 1):
            places |= {identity(one): (place, False) for one in _members(hit)}
            places[identity(hit)] = (place, True)
        after = [self._result(hit, place) for place, hit in enumerate(shown, start + 1)]
        groups = dedup["groups_total"]
        # A full page of few groups may be all that is known of them.
        more = groups["relation"] != "eq" and dedup["stopped_by"] == "page_full"
        return {
            "hits": self._after["hits"]["total"],
            "groups": groups,
            "folded": sum(one["folded"] for one in after),
            "mode": dedup["mode"],
            "mode_reason": dedup.get("mode_reason") or "",
            "before": [self._before(hit, rank, places) for rank, hit in enumerate(before, start + 1)],
            "after": after,
            "more": more or start + len(shown) < groups["value"],
        }

    def _document(self, hit: Hit) -> dict[str, Any]:
        return document_json(hit, self._index.recipe, self._index.name)

    def _before(self, hit: Hit, rank: int, places: Mapping[Any, tuple[int, bool]]) -> dict[str, Any]:
        # A hit this far up whose group is not on this page is of one on an earlier page.
        place, is_shown = places.get(identity(hit), (None, False))
        return {"rank": rank, "place": place, "shown": is_shown, "document": self._document(hit)}

    def _result(self, hit: Hit, place: int) -> dict[str, Any]:
        members = _members(hit)
        return {
            "place": place,
            "rank": self._ranks.get(identity(hit)),
            "document": self._document(hit),
            "snippet": snippet(hit, self._fields),
            "folded": hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] - 1,
            "members": [
                self._member(hit, one, with_passages=at < _MEMBERS) for at, one in enumerate(members)
            ],
        }

    def _member(self, shown: Hit, member: Hit, *, with_passages: bool) -> dict[str, Any]:
        passages: list[dict[str, Any]] = []
        if with_passages:
            sources = shown.get("_source") or {}, member.get("_source") or {}
            recipe, tokenize = self._index.recipe, self._index.canonicalizer.placed
            one, other = (language_by_recipe(recipe, source) for source in sources)
            found = matched_passages(*sources, self._fields, tokenize, (one, other))
            longest = sorted(found, key=lambda one: -one["equal_tokens"])[:_PASSAGES]
            passages = [
                _passage(one) for at, one in enumerate(longest) if not at or one["equal_tokens"] >= _LEAST
            ]
        return {
            "rank": self._ranks.get(identity(member)),
            "document": self._document(member),
            "why": self._why(member),
            "passages": passages,
        }

    def _why(self, member: Hit) -> dict[str, Any]:
        """Return what decided that a member folds, with the figures and the thresholds."""
        reason = self._reasons.get(identity(member), {})
        scheme = self._index.scheme
        return {
            "decided_by": reason.get("decided_by", ""),
            "resemblance": reason.get("resemblance"),
            "standard_error": reason.get("standard_error"),
            "needed": self._needed,
            "shared": len(reason.get("shared", ())),
            "supershingles": scheme.sketch.groups,
        }


def _members(hit: Hit) -> list[Hit]:
    return list(duplicates(hit))


def _passage(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "words": found["equal_tokens"],
        **{
            side: {"field": found[side]["field"], "pieces": passage_pieces(found[side])}
            for side in ("shown", "member")
        },
    }
