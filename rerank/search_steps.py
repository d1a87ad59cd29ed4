"""The steps of a folded search: the knowledge of the index, the page, and the fallback if it can't fold."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_args

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Search, search_parts
from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineError,
    EngineUnavailable,
    ShinglefoldError,
)
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_choice, check_str, check_type
from shinglefold.rerank.engine_calls import Call, Steps, run_together
from shinglefold.rerank.explanation import PassageTexts, shown_fields
from shinglefold.rerank.fold.clustering import folding_of
from shinglefold.rerank.fold.leader_groups import GroupByLeader, leader_groups
from shinglefold.rerank.index_fields import SchemeOf, is_valid, languages_of
from shinglefold.rerank.index_knowledge import IndexFacts, IndexKnowledge, Outdated, Unfoldable
from shinglefold.rerank.page.native import GroupCoverage, native_page, unfolded_page
from shinglefold.rerank.page.response import KEY, answer_page
from shinglefold.rerank.page.server import ServerFolding
from shinglefold.rerank.page.strategies import WindowStrategies, begin_cursor, read_page
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import check_search_arguments, checked_searches
from shinglefold.rerank.request.bodies import (
    SEQ_NO,
    page_bounds,
    read_completely,
    refuse_unfoldable,
    split_request,
    window_fields,
)
from shinglefold.rerank.request.fold_options import Explain, FoldOptions, OnTrouble, SearchRequest
from shinglefold.rerank.request.hit_parts import in_other_form, with_plain_values
from shinglefold.rerank.request.url_parameters import KEY as PIPELINE
from shinglefold.rerank.request.url_parameters import NONE, SearchPipeline, read_parameters, with_parameters
from shinglefold.runtime.recent import RecentlyUsed

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage, TextStages

Driven = TypeVar("Driven", Engine, AsyncEngine)
#: Errors that the engine's own page would have, too.
_FINAL = (EngineUnavailable, AuthenticationFailed)


@dataclass(slots=True)
class _Loaded:
    """What compares texts, for every index; created when texts first decide."""

    stages: "TextStages | None" = None


class SearchSteps(Generic[Driven]):
    """The steps of a folded search, blocking and awaited; see ``FoldedSearch`` for the arguments."""

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        scheme: Scheme | SchemeOf,
        field: str | None = FIELD,
        tiebreaker: str | None = "_shard_doc",
        *,
        keep_alive: str = "5m",
        cursor_key: bytes | None = None,
        seal: Seal | None = None,
        on_trouble: OnTrouble = "unfolded",
    ) -> None:
        check_search_arguments(engine, seal, awaited=self._awaited)
        check_choice("on_trouble", on_trouble, get_args(OnTrouble))
        if field is not None:
            check_str("field", field)
        check_str("keep_alive", keep_alive)
        if tiebreaker is not None:
            check_str("tiebreaker", tiebreaker)
        check_type("cursor_key", cursor_key, bytes, "bytes that only this site knows, or None", optional=True)
        self._engine: Driven = engine
        self._can = engine.can
        self._seal, self._on_trouble = seal, on_trouble
        self._scheme = scheme if callable(scheme) else checked_scheme(scheme)
        self._cursor_key = cursor_key or token_bytes(32)
        self._tiebreaker = tiebreaker
        self._keep_alive = keep_alive
        self._loaded = _Loaded()
        self._group_by_leader: GroupByLeader = leader_groups
        self._field = field
        self._by_server = ServerFolding(possible=self._can.search_pipelines)
        self._grouped = GroupCoverage()
        self._forget_indices()

    def _forget_indices(self) -> None:
        pipelines = self._can.search_pipelines
        self._knowledge = IndexKnowledge(self._scheme, self._field, self._seal, pipelines=pipelines)
        self._pipelines: RecentlyUsed[str, tuple[float, JSON]] = RecentlyUsed()
        self._strategies = WindowStrategies(self._can, self._tiebreaker, self._keep_alive)

    def for_another_caller(self, *, same_indices: bool) -> Self:
        """Return steps that share the loaded dictionaries, and not which documents a caller sees.

        Args:
            same_indices: whether all callers see the same indices behind a name, so that mappings are shared.
        """
        made = copy(self)
        made._grouped = GroupCoverage()  # noqa: SLF001 - its own
        if not same_indices:
            made._forget_indices()  # noqa: SLF001 - its own
        return made

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
        # The first block that it folds compiles or loads the code; any scheme will do.
        folding_of(Scheme(), FoldOptions(), FIELD, lead=compiled_leader_groups).add([{}, {}])
        self._group_by_leader = compiled_leader_groups
        return True

    def _search_steps(
        self,
        index: str | None,
        rest: JSON,
        given: Mapping[str, Any],
        options: FoldOptions | None,
        url: Mapping[str, Any] = MappingProxyType({}),
    ) -> Steps[JSON]:
        chosen = FoldOptions.parse(given, options)
        if not chosen.fold or (page_bounds(rest)[1] == 0 and chosen.cursor is False):
            answer: JSON = yield Call("search", (index, rest))
            return answer
        refuse_unfoldable(rest, chosen)
        request = SearchRequest(index, rest, chosen, url)
        try:
            return (yield from self._fold_with_retry(request))
        except Unfoldable as trouble:
            if self._is_strict(chosen):
                raise trouble.error from trouble.error.__cause__
            page = yield from self._answer_unfolded(request, str(trouble))
            self._knowledge.warn(index, trouble)
            return page

    def _is_strict(self, options: FoldOptions) -> bool:
        return (options.on_trouble or self._on_trouble) == "raise"

    def _fold_with_retry(self, request: SearchRequest) -> Steps[JSON]:
        """Fold by the cached knowledge of the index; if that fails, read it again and retry once."""
        facts = yield from self._facts(request)
        try:
            return (yield from self._page(request, facts))
        except _FINAL:
            raise
        except (Outdated, EngineError) as error:
            problem = error
        self._grouped.doubt(request.index)
        renewed = yield from self._facts(request, renew=True)
        # A server that failed, as after the loss of a node, may answer now; a refusal would be repeated.
        failed = problem.__class__ is EngineError
        if failed or isinstance(problem, Outdated) or renewed.differs(facts):
            try:
                return (yield from self._page(request, replace(renewed, settled=True)))
            except _FINAL:
                raise
            except EngineError as error:
                problem = error
        assert isinstance(problem, EngineError)
        raise Unfoldable(problem)

    def _facts(self, request: SearchRequest, *, renew: bool = False) -> Steps[IndexFacts]:
        """Return the knowledge of the index; warn of an index whose hits are shown alone."""
        facts = yield from self._knowledge.facts(request.index, request.options, request.body, renew=renew)
        if facts.mismatch is not None:
            if self._is_strict(request.options):
                raise copy(facts.mismatch)
            self._knowledge.warn(request.index, facts.mismatch)
        return facts

    def _page(self, request: SearchRequest, facts: IndexFacts) -> Steps[JSON]:
        """Answer with a folded page; raise ``Outdated`` if hits contradict what is cached about the index."""
        if request.options.mode == "window":
            return (yield from self._window(request, facts))
        native = ""
        if request.options.mode != "server":
            found = yield from native_page(request, facts, self._grouped, samples=self._can.samples)
            if not isinstance(found, str):
                return found
            native = found
        by_server = yield from self._by_server.page(
            request.index, request.body, request.options, facts, sealed=self._seal is not None
        )
        if not isinstance(by_server, str):
            return by_server if not native else {**by_server, KEY: {**by_server[KEY], "mode_reason": native}}
        folded = yield from self._window(request, facts)
        return {**folded, KEY: {**folded[KEY], "mode_reason": f"{by_server}; {native}"}}

    def _window(self, request: SearchRequest, facts: IndexFacts) -> Steps[JSON]:
        """Answer by folding a window of hits."""
        body, options = request.body, request.options
        pipeline = yield from self._pipeline(body, facts)
        if read_completely(body):
            _check_forms(body, window_fields(options, facts.dedup, True), facts.dates & options.date_fields)
        reading_of = partial(
            WindowReader,
            request,
            facts.scheme,
            facts.dedup,
            seal=self._seal,
            lead=self._group_by_leader,
            texts=self._texts(body, options, facts),
            stage=self._stage(options, facts),
            own_order=self._strategies.own_order,
            keep_alive=self._keep_alive,
            facts=facts,
            pipeline=pipeline,
            constant=self._can.seq_no and facts.may_skip_hits(body),
        )
        if options.cursor is not False:
            return (yield from self._scroll(request, facts.scheme, reading_of))
        # Members that are fetched in an order of their own are requested by id.
        by_rank = not options.inner_hits and options.members_from == "results"
        by_rank = by_rank and (pipeline is None or pipeline.page is None)
        reading = reading_of(numbers=self._strategies.numbers and by_rank)
        try:
            yield from self._strategies.read(reading, str(request.url.get("routing", "")))
            return (yield from answer_page(reading))
        finally:
            if reading.owns_pit:
                yield Call("close_pit", (reading.pit,))

    def _pipeline(self, body: JSON, facts: IndexFacts) -> Steps[SearchPipeline | None]:
        """Return what the search pipeline means for each request; None if there is none."""
        given = body.get(PIPELINE)
        if given == NONE or not self._can.search_pipelines:
            return None
        definition = facts.pipeline if given is None else given
        if isinstance(given, str):
            when, known = self._pipelines.get(given) or (0.0, None)
            if known is None or not is_valid(when):
                known = yield Call("search_pipeline", ("", given))
                self._pipelines.put(given, (monotonic(), known))
            definition = known
        if not isinstance(definition, Mapping) or not definition:
            return None
        try:
            return SearchPipeline.of(definition, repr(given) if isinstance(given, str) else "of the index")
        except ConfigError as error:
            raise Unfoldable(error) from None

    def _answer_unfolded(self, request: SearchRequest, reason: str) -> Steps[JSON]:
        """Answer with the engine's own page. A cursor reads on as in folded pages, without fingerprints."""
        index, body, options = request.index, request.body, request.options
        scheme = self._knowledge.scheme_of(index)
        if options.cursor is False:
            answer: JSON = yield Call("search", (index, body))
            return unfolded_page(answer, body, scheme.id if scheme else "", reason)
        if scheme is None:
            raise ConfigError(f"a cursor can't begin: {reason}")
        plain = replace(options, representative=(), scope=(), inner_hits=(), verify=None, explain=False)
        own_order, unfolded = self._strategies.own_order, replace(request, options=plain)
        reading_of = partial(WindowReader, unfolded, scheme, self._field or FIELD, own_order=own_order)
        page = yield from self._scroll(request, scheme, reading_of)
        return {**page, KEY: {**page[KEY], "mode": "unfolded", "mode_reason": reason}}

    def search_with_parameters(
        self,
        index: str | None,
        body: Mapping[str, Any] | None,
        options: FoldOptions | None,
        parameters: Mapping[str, Any],
    ) -> Steps[JSON]:
        """Search with URL parameters in addition to the body."""
        rest, given = split_request(body)
        if not parameters:
            return (yield from self._search_steps(index, rest, given, options))
        read = read_parameters(parameters)
        rest = with_plain_values(read.in_body(rest))
        steps = self._search_steps(index, rest, given, options, read.decisive)
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
                self.search_with_parameters(index, body, options, {**parameters, **(own or {})})
                for index, body, own in each
            ]
        )

    def _texts(self, body: Mapping[str, Any], options: FoldOptions, facts: IndexFacts) -> PassageTexts | None:
        """Return what compares the texts of hits; None if no passages are wanted. Loads dictionaries once."""
        if not isinstance(options.explain, Explain) or not options.explain.passages:
            return None
        from shinglefold.canon import Canonicalizer

        fields = shown_fields(body.get("_source"), options.explain.fields, facts.text_fields)
        languages = languages_of(facts.signing, facts.dedup)
        return PassageTexts(fields, Canonicalizer.of(facts.scheme).placed, facts.scheme, languages)

    def _stage(self, options: FoldOptions, facts: IndexFacts) -> "TextStage | None":
        """Return what decides uncertain pairs by their texts; None if texts are not compared."""
        copies = options.members_from == "index" and options.min_resemblance is None
        if options.verify != "text" and (options.verify is not None or not copies):
            return None
        loaded = self._loaded
        if loaded.stages is None:
            from shinglefold.rerank.fold.text_verification import TextStages

            loaded.stages = TextStages()
        return loaded.stages.stage(
            facts.scheme,
            facts.text_fields,
            wanted=options.verify == "text",
            by_index=facts.texts if len(set(facts.texts.values())) > 1 else {},
            mappings=facts.signing.values(),
        )

    def _scroll(
        self, request: SearchRequest, scheme: Scheme, reading_of: Callable[..., WindowReader]
    ) -> Steps[JSON]:
        """Answer with the page that a cursor points to."""
        tie = SEQ_NO if self._can.seq_no else self._tiebreaker
        if tie is None:
            raise ConfigError("a cursor needs a total order: give the search a tiebreaker")
        key, alive = self._cursor_key, None if self._can.seq_no else self._keep_alive
        cursor = yield from begin_cursor(request, scheme.id, keep_alive=alive, key=key)
        keep = {"keep_alive": self._keep_alive}
        reading = reading_of(cursor=cursor, tie=tie, pit=cursor.pit, keep=keep)
        return (yield from read_page(reading, cursor, key))


def _check_forms(body: Mapping[str, Any], fields: Sequence[str], dates: Container[str]) -> None:
    """Refuse a request that returns a field of folding in another form than its stored values."""
    if (name := in_other_form(body, fields, dates)) is not None:
        raise Unfoldable(
            ConfigError(
                f"folding reads {name}, which the request returns in another form, by a format or a script, "
                "and its hits are read once: leave it out, or explain, named queries and inner hits"
            )
        )
