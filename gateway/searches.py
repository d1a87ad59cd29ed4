"""Searches on their way to the engine: folded where the request or the caller asks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, EngineError, RecipeMismatch, SchemeMismatch, ShinglefoldError
from shinglefold.gateway.access import credentials
from shinglefold.gateway.indices import KnownIndices
from shinglefold.gateway.rest import (
    TAKES_TIME,
    Operation,
    RestRequest,
    RestResponse,
    Steps,
    Tiebreaker,
    ends_with_newline,
    failure,
    json_headers,
    names_twice,
    objects_of,
    path_of,
    read_lines,
    read_object,
    read_searches,
    send,
    whole_number,
    write_value,
)
from shinglefold.gateway.search_answers import unfolded_answer, with_body, with_dedup, with_reachable_total
from shinglefold.model.recipe import Recipe
from shinglefold.rerank.engine_calls import run_together
from shinglefold.rerank.request.fold_options import FoldOptions, may_compare_texts
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
#: Options of a template that are those of the search in it.
_OF_TEMPLATE = ("explain", "profile")
#: Statuses of a user who may not render templates, and may search by them.
_DENIED = (401, 403)


@dataclass(frozen=True, slots=True)
class _Template:
    """A search by a template.

    Attributes:
        bare: the template as engines take it, without ``ext``.
        asked: whether it has an ``ext.dedup`` of its own.
        search: the search in it, with that ``ext.dedup``; None if it was not rendered.
        why: why it could not be rendered.
        error: the engine's refusal of it, as of one of several searches; None if it may still search by it.
    """

    bare: JSON
    asked: bool
    search: JSON | None = None
    why: str = ""
    error: JSON | None = None


@dataclass(slots=True)
class _OneSearch:
    """One of several searches: its header, its body, and whether it is to be folded.

    ``template``: the original template, which is sent if the search is not changed.
    """

    header: JSON
    body: Any
    index: str | None
    wish: bool | None = None
    template: _Template | None = None

    @property
    def parameters(self) -> JSON:
        """The parameters in its header."""
        return {name: value for name, value in self.header.items() if name not in ("index", "indices")}

    @property
    def changes(self) -> bool:
        """Whether it is not sent unchanged."""
        return self.wish is not None or (self.template is not None and self.template.asked)

    @property
    def as_template(self) -> bool:
        """Whether it is sent as a template."""
        return self.template is not None and (self.template.search is None or self.wish is None)

    def request_lines(self) -> tuple[JSON, JSON]:
        """Return its lines in the engine's format."""
        template = self.template.bare if self.template is not None and self.as_template else None
        return self.header, with_dedup(self.body) if template is None else template


@dataclass(frozen=True, slots=True)
class _IndexFolding:
    """The search steps for an index, and the defaults of ``ext.dedup``.

    ``shared``: the one for all callers, from which this one for a caller was made.
    """

    recipe: Recipe | None
    tiebreaker: str | None
    steps: SearchSteps[Any]
    options: FoldOptions | None
    shared: "_IndexFolding | None" = None


class FoldedSearches:
    """Answers searches with folded pages; other searches are sent unchanged. See ``Interceptor``."""

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
        self._of_callers: RecentlyUsed[object, _IndexFolding] = RecentlyUsed(1024)
        self._tiebreaker: str | None = None

    def search(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Return a folded page; None if the request is to be sent unchanged.

        Raises:
            ConfigError: ``ext.dedup`` is not valid, or contradicts the rest of the request.
            EngineError: as the engine raises.
        """
        request = with_body(request)
        body = read_object(request.body)
        if body is None or "source" in request.parameters:
            return None
        index = _index_of(operation, body)
        wish = yield from self._wish(index, body, request.parameters, request.headers)
        if wish is None or names_twice(request.body):
            return None
        yield from self._find_tiebreaker()
        if wish is False:
            return (yield from send(replace(request, body=with_dedup(body) or None)))
        try:
            answer = yield from self._page(index, body, request.parameters, request.headers)
        except _Unfolded as trouble:
            plain = yield from send(replace(request, body=with_dedup(body) or None))
            if plain.refused:
                return plain
            return replace(plain, body=unfolded_answer(plain.body, body, request.parameters, str(trouble)))
        return None if answer is None else RestResponse(200, answer)

    def search_template(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Return what ``search`` returns for the search in a template; see there."""
        request = with_body(request)
        body = read_object(request.body)
        if body is None or "source" in request.parameters:
            return None
        template = yield from self._render_template(_index_of(operation, None), request, dict(body))
        if template is None or names_twice(request.body):
            return None
        if template.search is not None:
            path = request.path.removesuffix("/template")
            rendered = replace(request, path=path, body=template.search)
            answer = yield from self.search(operation, rendered)
            if answer is not None:
                filtered = answer.refused or "filter_path" in request.parameters
                if filtered or not self._engine.can.template_status:
                    return answer
                return replace(answer, body={**answer.body, "status": answer.status})
        if not template.asked:
            return None
        plain = yield from send(replace(request, body=template.bare))
        if not plain.refused:
            plain = replace(plain, body=unfolded_answer(plain.body, None, request.parameters, template.why))
        return plain

    def msearch(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Return the answers to several searches; None if all are to be sent unchanged."""
        request = with_body(request)
        if "source" in request.parameters:
            return None
        try:
            searches = [
                _OneSearch(header, body, _index_of_header(operation, header, body))
                for header, body in read_searches(request.body or b"")
            ]
        except (ValueError, TypeError, AttributeError):
            return None
        outcomes: dict[int, Any] = {}
        for place, one in enumerate(searches):
            if operation.name == "msearch_template" and isinstance(one.body, dict):
                one.template = yield from self._render_template(one.index, request, one.body)
                if one.template is None or one.template.search is None:
                    one.template = one.template or _Template(one.body, False)
                    if one.template.error is not None:
                        outcomes[place] = one.template.error
                    elif one.template.asked:
                        outcomes[place] = one.template.why
                    continue
                one.body = one.template.search
                one.index = _index_of_header(operation, one.header, one.body)
            one.wish = yield from self._wish(one.index, one.body, request.parameters, request.headers)
        chosen = [place for place, one in enumerate(searches) if one.wish]
        if not any(one.changes for one in searches) or not ends_with_newline(request.body):
            return None
        if any(map(names_twice, read_lines(request.body or b""))):
            return None
        yield from self._find_tiebreaker()
        own = {name: request.parameters[name] for name in _OF_EACH if name in request.parameters}
        found = yield from run_together(
            [self._one_of_several(searches[place], own, request.headers) for place in chosen]
        )
        outcomes |= zip(chosen, found, strict=True)
        return (yield from self._join_answers(request, searches, outcomes))

    def _render_template(
        self, index: str | None, request: RestRequest, body: JSON
    ) -> Steps[_Template | None]:
        """Return a template with its search; None if it is sent unchanged, whatever is in it."""
        known = index is None or _names_options(body)
        if not known and not (yield from self._indices.any_has_recipe(str(index), request.headers)):
            return None
        return (yield from _render(request, body))

    def _join_answers(
        self, request: RestRequest, searches: Sequence[_OneSearch], outcomes: Mapping[int, Any]
    ) -> Steps[RestResponse]:
        """Return the answers in order; the engine answers searches that are not folded.

        Args:
            outcomes: pages, errors, and reasons why the engine's own page is returned.
        """
        answers: dict[int, JSON] = {}
        plain = RestResponse(200, {})
        if outcomes or len({one.as_template for one in searches}) > 1:
            # An answer can't be put together of filtered ones.
            whole = {name: value for name, value in request.parameters.items() if name != "filter_path"}
            request = replace(request, parameters=whole)
        for templates in (True, False):
            rest = [
                place
                for place, one in enumerate(searches)
                if one.as_template is templates
                and (outcomes.get(place) is None or isinstance(outcomes[place], str | EngineError))
            ]
            if not rest:
                continue
            body = b"".join(
                write_value(line) + b"\n" for place in rest for line in searches[place].request_lines()
            )
            path = request.path if templates else request.path.removesuffix("/template")
            plain = yield from send(replace(request, path=path, body=body))
            if plain.refused or (not outcomes and len(rest) == len(searches)):
                return plain
            answers |= zip(rest, objects_of(plain, "responses", len(rest)), strict=True)
        for place, outcome in outcomes.items():
            if place not in answers:
                answers[place] = _answer_of(outcome)
            elif outcome is not None and "hits" in answers[place]:
                search = None if searches[place].as_template else searches[place].body
                answers[place] = unfolded_answer(answers[place], search, {}, str(outcome))
        took = max(whole_number(one.get("took")) for one in answers.values())
        joined = {"took": took, "responses": [answers[place] for place in range(len(searches))]}
        return replace(plain, status=200, body=joined)

    def _one_of_several(self, one: _OneSearch, own: JSON, headers: Mapping[str, str]) -> Steps[Any]:
        """Return a folded page, None where ``_page`` does, or the reason why it is not folded."""
        try:
            return (yield from self._page(one.index, one.body, {**own, **one.parameters}, headers))
        except _Unfolded as trouble:
            return str(trouble)

    def _wish(
        self,
        index: str | None,
        body: Any,  # noqa: ANN401 - JSON
        parameters: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> Steps[bool | None]:
        """Return whether to fold a page, or to send it without its options; None to send it unchanged."""
        if not isinstance(body, Mapping):
            return None
        ext = body.get("ext", {})
        if not isinstance(ext, Mapping):
            # The engine refuses it in its own words.
            return None
        if "dedup" in ext:
            given = ext["dedup"]
            return not (given is False or (isinstance(given, Mapping) and given.get("fold") is False))
        if index is None or "collapse" in body or parameters.keys() & {"scroll", "filter_path"}:
            return None
        return True if self._always or (yield from self._indices.folds(index, headers)) else None

    def _page(
        self, index: str | None, body: JSON, parameters: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Steps[JSON | None]:
        """Return a folded page; None if no index has a recipe and the request does not ask for folding.

        Raises ``_Unfolded`` if the engine's own page is to be returned.
        """
        asked = "dedup" in (body.get("ext") or {})
        try:
            folding = yield from self._folding_of(index, headers)
        except _TROUBLE as error:
            if self._options.on_trouble == "raise":
                raise
            raise _Unfolded(error) from error
        if folding.recipe is None and not asked:
            return None
        if may_compare_texts((body.get("ext") or {}).get("dedup"), folding.options):
            yield TAKES_TIME
        try:
            page = yield from folding.steps.search_with_parameters(index, body, folding.options, parameters)
        except ConfigError as error:
            if asked or self._options.on_trouble == "raise":
                raise
            # The caller of ``fold`` asked for it, not this request.
            raise _Unfolded(error) from error
        return page if asked else with_reachable_total(page, body, parameters)

    def _find_tiebreaker(self) -> Steps[None]:
        # One caller may not be allowed to ask for it, and another one may.
        if self._tiebreaker is None:
            self._tiebreaker = yield Tiebreaker()

    def _folding_of(self, index: str | None, headers: Mapping[str, str]) -> Steps[_IndexFolding]:
        recipe = None if index is None else (yield from self._indices.recipe(index, headers))
        folding = self._foldings.get(str(index))
        if folding is None or (folding.recipe, folding.tiebreaker) != (recipe, self._tiebreaker):
            folding = self._new_folding(index, recipe)
            self._foldings.put(str(index), folding)
        caller = str(index), credentials(headers)
        known = self._of_callers.get(caller)
        if known is None or known.shared is not folding:
            # Such as whether each document has the number of a group, which depends on who looks.
            same = yield from self._indices.is_index(index, headers)
            known = replace(
                folding, steps=folding.steps.for_another_caller(same_indices=same), shared=folding
            )
            self._of_callers.put(caller, known)
        return known

    def _new_folding(self, index: str | None, recipe: Recipe | None) -> _IndexFolding:
        options, name = self._options, str(index)
        seal = key = fold = None
        if recipe is None:
            given = options.dedup
            fold = given if isinstance(given, FoldOptions) else FoldOptions.parse(given or {})
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
        return _IndexFolding(recipe, self._tiebreaker, steps, fold)


def _names_options(body: Mapping[str, Any]) -> bool:
    """Return whether a template may have folding options, judged by the request alone."""
    return "ext" in body or "dedup" in str(body.get("source", ""))


def _render(request: RestRequest, body: JSON) -> Steps[_Template]:
    """Return a template with the search in it, as the engine renders it for the caller of a request."""
    own = body.get("ext")
    asked = isinstance(own, Mapping) and "dedup" in own
    bare = with_dedup(body)
    headers = json_headers(request.headers)
    wanted = {name: bare[name] for name in ("source", "id", "params") if name in bare}
    rendering = replace(
        request, method="POST", path=path_of("_render", "template"), parameters={}, headers=headers
    )
    answer = yield from send(replace(rendering, body=write_value(wanted)))
    found = None if answer.failed else answer.body.get("template_output")
    if not isinstance(found, dict):
        told = answer.failed and answer.status not in _DENIED and isinstance(answer.body, Mapping)
        error = {**answer.body, "status": answer.status} if told else None
        why = f"the engine does not render the template (status {answer.status})"
        return _Template(bare, asked, why=why, error=error)
    search = found | {name: bare[name] for name in _OF_TEMPLATE if name in bare}
    ext = search.get("ext", {})
    # The engine refuses another one in its own words.
    if asked and isinstance(own, Mapping) and isinstance(ext, Mapping):
        search["ext"] = {**ext, "dedup": own["dedup"]}
    return _Template(bare, asked, search)


def _answer_of(outcome: Any) -> JSON:  # noqa: ANN401 - a page or an error
    """Return the answer to one of several searches."""
    return failure(str(outcome)) if isinstance(outcome, ShinglefoldError) else {"status": 200, **outcome}


class _Unfolded(Exception):
    """The engine's own page must be returned."""


def _index_of(operation: Operation, body: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return the name that a search is for; None if it is under a point in time."""
    return operation.target or (None if isinstance(body, Mapping) and "pit" in body else "_all")


def _index_of_header(operation: Operation, header: JSON, body: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return the name that one of several searches is for; raise where the engine has to refuse it."""
    named = header.get("index", header.get("indices", operation.target))
    index = ",".join(named) if isinstance(named, list) else named
    if index is not None:
        # Half of a surrogate pair is in no path.
        str.encode(index)
    return _index_of(Operation("search", index), body)
