"""Searches on their way to the engine: folded where the request or the caller asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, EngineError, RecipeMismatch, SchemeMismatch, ShinglefoldError
from shinglefold.gateway.indices import KnownIndices
from shinglefold.gateway.rest import (
    Operation,
    RestRequest,
    RestResponse,
    Steps,
    Tiebreaker,
    ends_with_newline,
    failure,
    read_lines,
    read_value,
    send,
    write_value,
)
from shinglefold.model.recipe import Recipe
from shinglefold.rerank.engine_calls import run_together
from shinglefold.rerank.page.unfolded import unfolded_page
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.search_steps import SearchSteps
from shinglefold.runtime.recent import RecentlyUsed
from shinglefold.settings import Settings

#: Why an index can't be folded, though its engine can search it.
_TROUBLE = (ConfigError, SchemeMismatch, RecipeMismatch)
#: Parameters of an ``_msearch`` that hold for each of its searches.
_OF_EACH = (
    *("typed_keys", "rest_total_hits_as_int", "search_type", "ccs_minimize_roundtrips", "filter_path"),
    *("routing", "ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled"),
    *("max_concurrent_shard_requests", "pre_filter_shard_size", "include_named_queries_score"),
)


_NAMES = ("index", "indices")


@dataclass(frozen=True, slots=True)
class _IndexFolding:
    """What folds the searches of an index: the steps, and the defaults of ``ext.dedup``."""

    recipe: Recipe | None
    tiebreaker: str | None
    steps: SearchSteps[Any]
    options: FoldOptions | None


class FoldedSearches:
    """Answers searches with folded pages; what it does not fold passes.

    Args:
        engine: says what it can; it is not called.
        kind: ``FoldedSearch`` or ``AsyncFoldedSearch``.
        options: as of ``shinglefold.open``.
        always: fold searches that have no ``ext.dedup``, too.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        kind: type[SearchSteps[Any]],
        options: IndexOptions,
        settings: Settings,
        indices: KnownIndices,
        *,
        always: bool,
    ) -> None:
        self._engine, self._kind = engine, kind
        self._options, self._settings, self._indices = options, settings, indices
        self._always = always
        self._foldings: RecentlyUsed[str, _IndexFolding] = RecentlyUsed(256)
        self._tiebreaker: str | None = None

    def search(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Return a folded page, or None if the request is to pass unchanged.

        Raises:
            ConfigError: ``ext.dedup`` is not valid, or contradicts the rest of the request.
            EngineError: as the engine raises.
        """
        try:
            body = read_value(request.body) or {}
        except ValueError:
            return None
        wish = self._wish(body, request.parameters)
        if wish is None:
            return None
        yield from self._find_tiebreaker()
        if wish is False:
            return (yield from send(replace(request, body=_without_options(body) or None)))
        try:
            answer = yield from self._page(_index_of(operation, body), body, request.parameters)
        except _Unfolded as trouble:
            plain = yield from send(replace(request, body=_without_options(body) or None))
            if plain.failed:
                return plain
            return replace(plain, body=trouble.mark(plain.body, body, request.parameters))
        return None if answer is None else RestResponse(200, answer)

    def msearch(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Return the answers to several searches, folded ones and others, or None if all are to pass."""
        try:
            values = [read_value(line) for line in read_lines(request.body or b"")]
            pairs = list(zip(values[::2], values[1::2], strict=True))
            wishes = [self._wish(body, {**request.parameters, **header}) for header, body in pairs]
        except (ValueError, TypeError, AttributeError):
            return None
        if not any(wish is not None for wish in wishes) or not ends_with_newline(request.body):
            return None
        yield from self._find_tiebreaker()
        own = {name: request.parameters[name] for name in _OF_EACH if name in request.parameters}
        chosen = [place for place, wish in enumerate(wishes) if wish]
        found = yield from run_together(
            [self._one_of_several(operation, *pairs[place], own) for place in chosen]
        )
        outcomes = dict(zip(chosen, found, strict=True))
        return (yield from self._joined(request, pairs, outcomes))

    def _joined(
        self, request: RestRequest, pairs: list[tuple[JSON, JSON]], outcomes: Mapping[int, Any]
    ) -> Steps[RestResponse]:
        """Return the answers in order; the engine itself answers what is not folded."""
        rest = [
            place
            for place in range(len(pairs))
            if outcomes.get(place) is None or isinstance(outcomes[place], _Unfolded | EngineError)
        ]
        answers: dict[int, JSON] = {}
        plain = RestResponse(200, {})
        if rest:
            lines = [part for place in rest for part in (pairs[place][0], _without_options(pairs[place][1]))]
            # An answer can't be put together of filtered ones.
            whole = {name: value for name, value in request.parameters.items() if name != "filter_path"}
            body = b"".join(write_value(line) + b"\n" for line in lines)
            plain = yield from send(replace(request, parameters=whole, body=body))
            if plain.failed:
                return plain
            answers = dict(zip(rest, plain.body["responses"], strict=True))
        for place, outcome in outcomes.items():
            if place not in answers:
                answers[place] = _answer_of(outcome)
            elif outcome is not None and "hits" in answers[place]:
                answers[place] = _Unfolded(outcome).mark(answers[place], pairs[place][1], {})
        took = max(int(one.get("took") or 0) for one in answers.values())
        joined = {"took": took, "responses": [answers[place] for place in range(len(pairs))]}
        return replace(plain, status=200, body=joined)

    def _one_of_several(self, operation: Operation, header: JSON, body: JSON, own: JSON) -> Steps[Any]:
        named = header.get("index", header.get("indices", operation.target))
        index = ",".join(named) if isinstance(named, list) else named
        parameters = {**own, **{name: value for name, value in header.items() if name not in _NAMES}}
        try:
            return (yield from self._page(_index_of(Operation("search", index), body), body, parameters))
        except _Unfolded as trouble:
            return trouble

    def _wish(self, body: Any, parameters: Mapping[str, Any]) -> bool | None:  # noqa: ANN401 - JSON
        """Return whether a page is to be folded; None if the request passes unchanged.

        False: it passes without its options.
        """
        if not isinstance(body, Mapping):
            return None
        ext = body.get("ext")
        if isinstance(ext, Mapping) and "dedup" in ext:
            given = ext["dedup"]
            return not (given is False or (isinstance(given, Mapping) and given.get("fold") is False))
        if not self._always or "collapse" in body or parameters.keys() & {"scroll", "source", "filter_path"}:
            return None
        return True

    def _page(self, index: str | None, body: JSON, parameters: Mapping[str, Any]) -> Steps[JSON | None]:
        """Return a folded page; None if no index has a recipe and the request does not ask for folding.

        Raises:
            _Unfolded: the engine's own page is to be returned, and this is why.
        """
        asked = "dedup" in (body.get("ext") or {})
        try:
            folding = yield from self._folding(index)
        except _TROUBLE as error:
            if self._options.on_trouble == "raise":
                raise
            raise _Unfolded(error) from error
        if folding.recipe is None and not asked:
            return None
        try:
            return (yield from folding.steps.search_with_parameters(index, body, folding.options, parameters))
        except ConfigError as error:
            if asked or self._options.on_trouble == "raise":
                raise
            # The caller of ``fold`` asked for it, not this request.
            raise _Unfolded(error) from error

    def _find_tiebreaker(self) -> Steps[None]:
        # One caller may not be allowed to ask for it, and another one may.
        if self._tiebreaker is None:
            self._tiebreaker = yield Tiebreaker()

    def _folding(self, index: str | None) -> Steps[_IndexFolding]:
        recipe = None if index is None else (yield from self._indices.recipe(index))
        known = self._foldings.get(str(index))
        if known is not None and (known.recipe, known.tiebreaker) == (recipe, self._tiebreaker):
            return known
        options, name = self._options, str(index)
        seal = key = fold = None
        if recipe is None:
            fold = (
                options.dedup
                if isinstance(options.dedup, FoldOptions)
                else FoldOptions.parse(options.dedup or {})
            )
        else:
            seal = options.seal(recipe, self._settings, name)
            fold = options.fold_options(recipe)
            key = options.cursor_secret(self._settings, self._engine, name, recipe.scheme)
        steps = self._kind(
            self._engine,
            options.scheme,
            None,
            self._tiebreaker,
            cursor_key=key or options.cursor_key,
            seal=seal,
            on_trouble=options.on_trouble,
        )
        made = _IndexFolding(recipe, self._tiebreaker, steps, fold)
        self._foldings.put(str(index), made)
        return made


def _answer_of(outcome: Any) -> JSON:  # noqa: ANN401 - a page or an error
    """Return the answer to one of several searches."""
    return failure(str(outcome)) if isinstance(outcome, ShinglefoldError) else {**outcome, "status": 200}


class _Unfolded(Exception):
    """The engine's own page is to be returned."""

    def mark(self, answer: JSON, body: JSON, parameters: Mapping[str, Any]) -> JSON:
        """Return the engine's own page, in the shape of folded ones, with the reason in ``dedup``."""
        if "filter_path" in parameters:
            return {**answer, "dedup": {"mode": "unfolded", "mode_reason": str(self.args[0])}}
        bounds = {
            name: int(one[name]) for one in (body, parameters) for name in ("from", "size") if name in one
        }
        return answer if bounds.get("size") == 0 else unfolded_page(answer, bounds, "", str(self.args[0]))


def _without_options(body: JSON) -> JSON:
    """Return a body without ``ext.dedup``, and nothing else changed."""
    if not isinstance(body, Mapping) or "dedup" not in (body.get("ext") or {}):
        return body
    rest = {name: value for name, value in body.items() if name != "ext"}
    ext = {name: value for name, value in body["ext"].items() if name != "dedup"}
    return {**rest, "ext": ext} if ext else rest


def _index_of(operation: Operation, body: Mapping[str, Any]) -> str | None:
    """Return the name that a search is for; None if it is under a point in time."""
    return operation.target or (None if "pit" in body else "_all")
