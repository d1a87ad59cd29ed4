"""The folded search: searches an engine, folds the hits and returns pages of representatives."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from secrets import token_bytes
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Search, search_parts
from shinglefold.errors import ConfigError, ShinglefoldError
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_object, check_str, check_type
from shinglefold.rerank.engine_calls import Call, Steps, run, run_async, run_together
from shinglefold.rerank.explanation import PassageTexts, shown_fields
from shinglefold.rerank.fold.clustering import folding_of
from shinglefold.rerank.fold.leader_groups import GroupByLeader, leader_groups
from shinglefold.rerank.index_knowledge import IndexKnowledge, index_names
from shinglefold.rerank.page.native import GroupCoverage, NativeTarget, native_page
from shinglefold.rerank.page.response import KEY, answer_page
from shinglefold.rerank.page.strategies import WindowStrategies, begin_cursor, read_page
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import check_search_arguments, checked_searches
from shinglefold.rerank.request.bodies import SEQ_NO, page_bounds, refuse_collapse, split_request
from shinglefold.rerank.request.fold_options import Explain, FoldOptions
from shinglefold.rerank.request.url_parameters import read_parameters, with_parameters

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer
    from shinglefold.rerank.fold.text_verification import TextStage, TextStages

Driven = TypeVar("Driven", Engine, AsyncEngine)


class SearchSteps(Generic[Driven]):
    """The steps of a folded search, blocking and awaited; see ``FoldedSearch`` for the arguments."""

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        scheme: Scheme,
        field: str = "dedup",
        tiebreaker: str | None = "_shard_doc",
        *,
        keep_alive: str = "5m",
        cursor_key: bytes | None = None,
        canonicalizer: "Canonicalizer | None" = None,
        seal: Seal | None = None,
    ) -> None:
        check_search_arguments(engine, canonicalizer, seal, awaited=self._awaited)
        check_str("field", field)
        check_str("keep_alive", keep_alive)
        if tiebreaker is not None:
            check_str("tiebreaker", tiebreaker)
        check_type("cursor_key", cursor_key, bytes, "bytes that only this site knows, or None", optional=True)
        self._engine: Driven = engine
        self._can = engine.can
        self._scheme, self._field, self._seal = checked_scheme(scheme), field, seal
        self._cursor_key = cursor_key or token_bytes(32)
        self._tiebreaker = tiebreaker
        self._keep_alive = keep_alive
        self._canonicalizer = canonicalizer
        #: Created when a request first lets texts decide.
        self._stages: TextStages | None = None
        self._group_by_leader: GroupByLeader = leader_groups
        self._knowledge = IndexKnowledge(self._scheme, field, seal)
        self._strategies = WindowStrategies(self._can, tiebreaker, keep_alive)
        grouped = GroupCoverage(self._scheme.id, field)
        self._native = NativeTarget(self._scheme, field, grouped, self._knowledge.mappings, self._can.samples)

    @property
    def is_compiled(self) -> bool:
        """Whether pages are folded by compiled code."""
        return self._group_by_leader is not leader_groups

    def compile(self) -> bool:
        """Fold by compiled code from now on, to the same groups, if the extra ``fast`` is installed.

        Call it when a process starts that serves many searches.

        Returns:
            whether pages are folded by compiled code now.

        Cost: 0.6 s; 1.9 s the first time on a machine.
        """
        try:
            from shinglefold.rerank.fold.compiled_groups import compiled_leader_groups
        except ImportError:
            return False
        # The first block that it folds compiles or loads the code.
        folding_of(self._scheme, FoldOptions(), self._field, lead=compiled_leader_groups).add([{}, {}])
        self._group_by_leader = compiled_leader_groups
        return True

    def _search_steps(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None,
        url: Mapping[str, Any] = MappingProxyType({}),
    ) -> Steps[JSON]:
        rest, given = split_request(body)
        chosen = FoldOptions.parse(given, options)
        if not chosen.fold or (page_bounds(rest)[1] == 0 and chosen.cursor is False):
            answer: JSON = yield Call("search", (index, rest))
            return answer
        refuse_collapse(rest)
        yield from self._knowledge.check(index, chosen)
        if chosen.mode == "window":
            return (yield from self._window(index, rest, chosen, url))
        native = yield from native_page(index, rest, chosen, self._native)
        if not isinstance(native, str):
            return native
        folded = yield from self._window(index, rest, chosen, url)
        return {**folded, KEY: {**folded[KEY], "mode_reason": native}}

    def _window(
        self, index: str | None, rest: JSON, chosen: FoldOptions, url: Mapping[str, Any]
    ) -> Steps[JSON]:
        """Answer by folding a window of hits."""
        texts = self._texts(index, rest, chosen)
        stage = yield from self._stage(index, chosen)
        reading_of = partial(
            WindowReader,
            rest,
            chosen,
            self._scheme,
            self._field,
            seal=self._seal,
            lead=self._group_by_leader,
            texts=texts,
            stage=stage,
            own_order=self._strategies.own_order,
            constant=self._can.seq_no and not self._knowledge.skips_exactly(index, rest),
        )
        if chosen.cursor is not False:
            return (yield from self._scroll(index, rest, chosen, url, reading_of))
        # Members that are fetched in an order of their own are requested by id.
        by_rank = not chosen.inner_hits and chosen.members_from == "results"
        reading = reading_of(numbers=self._strategies.numbers and by_rank)
        try:
            yield from self._strategies.read(reading, index, str(url.get("routing", "")))
            return (yield from answer_page(reading, index))
        finally:
            if reading.owns_pit:
                yield Call("close_pit", (reading.pit,))

    def _search_with_parameters(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None,
        parameters: Mapping[str, Any],
    ) -> Steps[JSON]:
        """Search with URL parameters in addition to the body."""
        if not parameters:
            return (yield from self._search_steps(index, body, options))
        read = read_parameters(parameters)
        steps = self._search_steps(index, read.in_body(body), options, read.decisive)
        return (yield from with_parameters(steps, read))

    def _msearch_steps(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None,
        parameters: Mapping[str, Any],
    ) -> Steps[list[JSON | ShinglefoldError]]:
        """Run several searches together, each with its own URL parameters and those of all."""
        each = [search_parts(one) for one in checked_searches(searches)]
        return run_together(
            [
                self._search_with_parameters(index, body, options, {**parameters, **(own or {})})
                for index, body, own in each
            ]
        )

    def _texts(self, index: str | None, body: Mapping[str, Any], options: FoldOptions) -> PassageTexts | None:
        """Return what compares the texts of hits; None if no passages are wanted. Loads dictionaries once.

        Raises:
            ConfigError: the request's own ``_source`` does not show these texts.
        """
        if not isinstance(options.explain, Explain) or not options.explain.passages:
            return None
        fields = shown_fields(body.get("_source"), options.explain.fields, self._knowledge.text_fields(index))
        return PassageTexts(fields, self._load_canonicalizer().placed)

    def _stage(self, index: str | None, options: FoldOptions) -> "Steps[TextStage | None]":
        """Return what decides uncertain pairs by their texts; None if texts are not compared."""
        copies = options.members_from == "index" and options.min_resemblance is None
        if options.verify != "text" and (options.verify is not None or not copies):
            return None
        if self._stages is None:
            from shinglefold.rerank.fold.text_verification import TextStages

            self._stages = TextStages(self._canonicalizer)
        scheme = self._scheme
        if options.facts != "any":
            scheme = scheme.with_options(verify="text", facts=options.facts)
        each = yield from self._knowledge.text_fields_by_index(index)
        fields = tuple(dict.fromkeys(field for own in each.values() for field in own))
        wanted = options.verify == "text"
        fields = fields or self._knowledge.text_fields(index)
        known = self._knowledge.mappings
        mappings = [known[name] for name in index_names(index) if name in known]
        return self._stages.stage(scheme, fields, wanted=wanted, by_index=each, mappings=mappings)

    def _load_canonicalizer(self) -> "Canonicalizer":
        if self._canonicalizer is None:
            from shinglefold.canon import Canonicalizer

            self._canonicalizer = Canonicalizer.of(self._scheme)
        return self._canonicalizer

    def _scroll(
        self,
        index: str | None,
        body: JSON,
        options: FoldOptions,
        url: Mapping[str, Any],
        reading_of: Callable[..., WindowReader],
    ) -> Steps[JSON]:
        """Answer with the page that a cursor points to."""
        tie = SEQ_NO if self._can.seq_no else self._tiebreaker
        if tie is None:
            raise ConfigError("a cursor needs a total order: give the search a tiebreaker")
        key, alive = self._cursor_key, None if self._can.seq_no else self._keep_alive
        cursor = yield from begin_cursor(
            index, body, options, self._scheme, url=url, keep_alive=alive, key=key
        )
        keep = {"keep_alive": self._keep_alive}
        reading = reading_of(cursor=cursor, tie=tie, pit=cursor.pit, keep=keep)
        return (yield from read_page(reading, index, cursor, key))


class FoldedSearch(SearchSteps[Engine]):
    """Searches an engine and folds the hits.

    Args:
        engine: any ``Engine``.
        scheme: the scheme the index was made with.
        field: the object field of the fingerprints.
        tiebreaker: the sort key that makes an order total under a point in time: ``_shard_doc``, or for
            OpenSearch 2, which lacks it, a field with a unique value in each document. None reads longer
            windows from the start instead of continuing after the last hit.
        keep_alive: how long a point in time may wait for the next request.
        cursor_key: encrypts cursors; processes that serve the same searches need the same key. None creates
            one.
        canonicalizer: a canonicalizer of the scheme, for matching passages; None creates one on first use.
        seal: the seal with the key of the index; fingerprints without that seal are unreadable.
    """

    def search(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives in the engine's own shape.

        Each hit carries its group under ``inner_hits.duplicates``, as after a native collapse: the total
        counts the hit itself, and the attached hits begin with it. ``dedup`` holds the counters. Everything
        else, such as ``hits.total`` and aggregations, is the engine's.

        Args:
            index: one name or several with commas; None if the body names a point in time.
            body: a search request; ``from`` and ``size`` count representatives; ``ext.dedup`` has options.
            options: the options that ``ext.dedup`` does not set.
            params: URL parameters of the engines (``routing``, ``preference``, ``search_type`` …), in an
                object, or each as a keyword.

        Raises:
            ConfigError: the options or the body are not valid, or name a field that the index lacks; or the
                index is sealed with another key.
            SchemeMismatch: an index was made with another scheme.
            RecipeMismatch: an index has its fingerprints in another field.
            EngineError: as the engine raises.

        Cost: two requests if the first window fills the page. Passages take one more, and some ms for each
        thousand words of the members' texts.
        """
        return run(
            self._engine,
            self._search_with_parameters(index, body, options, _merge_parameters(params, parameters)),
        )

    def msearch(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several searches, whose requests are sent together.

        Args:
            searches: index and body of each, as for ``search``, and optionally its own URL parameters.
            params: URL parameters of all of them.

        Returns:
            the answers in order; for a search that failed its error.

        Cost: as many requests as the longest of them takes, in most cases two.
        """
        return run(
            self._engine, self._msearch_steps(searches, options, _merge_parameters(params, parameters))
        )

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> Iterator[JSON]:
        """Yield page after page until the results end; no group is on two of them.

        A point in time that is not read to the end expires after ``keep_alive``.
        """
        rest, chosen = _begin_paging(body, options)
        while chosen.cursor:
            answer = self.search(index, rest, chosen, params=params, **parameters)
            yield answer
            chosen = replace(chosen, cursor=answer[KEY]["cursor"] or False)


class AsyncFoldedSearch(SearchSteps[AsyncEngine]):
    """``FoldedSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True

    async def search(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives; see ``FoldedSearch.search``."""
        return await run_async(
            self._engine,
            self._search_with_parameters(index, body, options, _merge_parameters(params, parameters)),
        )

    async def msearch(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several searches; see ``FoldedSearch.msearch``."""
        return await run_async(
            self._engine, self._msearch_steps(searches, options, _merge_parameters(params, parameters))
        )

    async def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> AsyncIterator[JSON]:
        """Yield page after page until the results end; see ``FoldedSearch.pages``."""
        rest, chosen = _begin_paging(body, options)
        while chosen.cursor:
            answer = await self.search(index, rest, chosen, params=params, **parameters)
            yield answer
            chosen = replace(chosen, cursor=answer[KEY]["cursor"] or False)


def _begin_paging(body: Mapping[str, Any], options: FoldOptions | None) -> tuple[JSON, FoldOptions]:
    """Return a request without our options, and the options with a new cursor."""
    rest, given = split_request(body)
    return rest, FoldOptions.parse({"cursor": True, **given}, options)


def _merge_parameters(params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters that a caller gave in an object and as keywords.

    Raises:
        ConfigError: ``params`` is not an object.
    """
    if params is None:
        return more
    return {**check_object("params", params, 'an object, such as {"routing": "a"}'), **more}
