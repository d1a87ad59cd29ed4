"""The steps of a folded search: what is asked of the engine, and what is made of the answers."""

from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shinglefold.awaited import AsyncEngine
from shinglefold.checks import check_is_text, check_kind
from shinglefold.contracts import JSON, Engine, Search, search_parts
from shinglefold.errors import (
    ConfigError,
    EngineError,
    PermissionDenied,
    ShinglefoldError,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.order import SEQ_NO
from shinglefold.recipe import DIFFERING, signed_fields
from shinglefold.rerank.explanation.stored_passages import Texts, shown_fields
from shinglefold.rerank.fold.folding import folding_of
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.fold.neighbours import Lead, led
from shinglefold.rerank.msearch import run_side_by_side
from shinglefold.rerank.native import Grouped, Target, native_page
from shinglefold.rerank.page.cursor_pages import begin_cursor, read_page
from shinglefold.rerank.page.response import KEY, answer_page
from shinglefold.rerank.request.arguments import check_means, checked_searches
from shinglefold.rerank.request.bodies import by_place, can_go_on, page_bounds, refuse_collapse, split_request
from shinglefold.rerank.request.known_fields import check_fields, check_scopes, knows, named_fields
from shinglefold.rerank.request.options import Explain, FoldOptions
from shinglefold.rerank.request.parameters import read_parameters, with_parameters
from shinglefold.rerank.request.recipes import check_keywords, check_recipe, index_names
from shinglefold.rerank.steps import Call, Steps
from shinglefold.rerank.window.reading import Reading
from shinglefold.scheme import Scheme, checked_scheme
from shinglefold.seal import Seal

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer
    from shinglefold.rerank.fold.text_stage import Stages, TextStage

#: Mappings that may have any field.
_UNKNOWN = MappingProxyType({"dynamic": "false"})

Driven = TypeVar("Driven", Engine, AsyncEngine)


class SearchSteps(Generic[Driven]):
    """The steps of a search, whoever drives them."""

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
        check_means(engine, canonicalizer, seal, awaited=self._awaited)
        check_is_text("field", field)
        check_is_text("keep_alive", keep_alive)
        if tiebreaker is not None:
            check_is_text("tiebreaker", tiebreaker)
        check_kind("cursor_key", cursor_key, bytes, "bytes that only this site knows, or None", optional=True)
        self._seal = seal
        self._engine: Driven = engine
        self._cursor_key = cursor_key or token_bytes(32)
        self._scheme = checked_scheme(scheme)
        self._field = field
        self._tiebreaker = tiebreaker
        self._keep_alive = keep_alive
        self._can = engine.can
        self._numbers = engine.can.seq_no
        #: By index and routing searched: whether there are several shards.
        self._several: dict[tuple[str | None, str], bool] = {}
        self._canonicalizer = canonicalizer
        #: What makes stages that decide by texts, once one was wanted.
        self._stages: Stages | None = None
        self._grouped = Grouped(self._scheme.id, field)
        self._lead: Lead = led
        #: By index looked at: its mappings, whose recipe fits.
        self._checked: dict[str, Mapping[str, Any]] = {}
        #: By name that means several recipes: the mappings of each index.
        self._each: dict[str, Mapping[str, Mapping[str, Any]]] = {}

    @property
    def is_compiled(self) -> bool:
        """Whether it folds by compiled code."""
        return self._lead is not led

    def compile(self) -> bool:
        """Fold by compiled code from now on, to the same groups, where the extra ``fast`` is installed.

        Worth it where many pages are searched: call it before the first, as a server does when it starts.

        Returns:
            Whether it is.

        Cost: 0.6 s, and 1.9 where the code was never compiled on this machine.
        """
        try:
            from shinglefold.rerank.fold.compiled import compiled_led
        except ImportError:
            return False
        # Compiled, or loaded, by the first block that it folds.
        folding_of(self._scheme, FoldOptions(), self._field, lead=compiled_led).add([{}, {}])
        self._lead = compiled_led
        return True

    def _steps(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None,
        address: Mapping[str, Any] = MappingProxyType({}),
    ) -> Steps[JSON]:
        rest, given = split_request(body)
        chosen = FoldOptions.parse(given, options)
        if not chosen.fold or (page_bounds(rest)[1] == 0 and chosen.cursor is False):
            answer: JSON = yield Call("search", (index, rest))
            return answer
        refuse_collapse(rest)
        yield from self._check_index(index, chosen)
        if chosen.mode == "window":
            return (yield from self._window(index, rest, chosen, address))
        native = yield from native_page(
            index,
            rest,
            chosen,
            Target(self._scheme, self._field, self._grouped, self._checked, self._can.samples),
        )
        if not isinstance(native, str):
            return native
        folded = yield from self._window(index, rest, chosen, address)
        return {**folded, KEY: {**folded[KEY], "mode_reason": native}}

    def _window(
        self, index: str | None, rest: JSON, chosen: FoldOptions, address: Mapping[str, Any]
    ) -> Steps[JSON]:
        """Answer by folding a window of hits."""
        texts = self._texts(index, rest, chosen)
        if chosen.cursor is not False:
            return (yield from self._scroll(index, rest, chosen, texts, address))
        # Members found by an order of their own are asked for by id.
        numbers = self._numbers and not chosen.inner_hits and chosen.members_from == "results"
        reading = Reading(
            rest,
            chosen,
            self._scheme,
            self._field,
            texts=texts,
            numbers=numbers,
            seal=self._seal,
            own=self._place(),
            lead=self._lead,
        )
        reading.stage = yield from self._stage(index, chosen)
        if "pit" in rest:
            if index is not None:
                # Its own index and filters hold; those of the name given would be passed over.
                raise UnsupportedQuery("search: a point in time has its index; give None as index")
            return (yield from self._under_own_pit(reading))
        yield from self._read_first(index, reading, str(address.get("routing", "")))
        if reading.stopped_by is None:
            # What is sorted by its place may have another one a moment later.
            moves = by_place(rest) is not None
            if reading.tie is not None and not moves:
                yield from reading.read_on(index)
            elif (tie := reading.tie or self._place()) is not None and can_go_on(rest, tie):
                return (yield from self._under_pit(index, reading, tie))
        yield from reading.read_more(index)
        return (yield from answer_page(reading, index))

    def asked(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None,
        parameters: Mapping[str, Any],
    ) -> Steps[JSON]:
        """Run a search with what was said beside its body."""
        if not parameters:
            return (yield from self._steps(index, body, options))
        read = read_parameters(parameters)
        steps = self._steps(index, {**body, **read.body}, options, read.decisive)
        return (yield from with_parameters(steps, read))

    def asked_together(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None,
        parameters: Mapping[str, Any],
    ) -> Steps[list[JSON | ShinglefoldError]]:
        """Run several searches side by side, with what was said beside all of them or each."""
        each = [search_parts(one) for one in checked_searches(searches)]
        return run_side_by_side(
            [self.asked(index, body, options, {**parameters, **(own or {})}) for index, body, own in each]
        )

    def _read_first(self, index: str | None, reading: Reading, routing: str) -> Steps[None]:
        """Read the first window: with its ties settled where there are several shards.

        One shard has one order of its own, and settling ties costs a fifth of the window.
        """
        settles = self._can.seq_no and can_go_on(reading.body, SEQ_NO)
        if settles and self._several.get((index, routing)):
            reading.tie = SEQ_NO
        try:
            yield from self._read_window(index, reading)
        except WindowTooLarge:
            if not settles or reading.tie is not None:
                raise
            # The index allows only smaller ones: in steps.
            reading.tie = SEQ_NO
            yield from reading.read(index)
            return
        if reading.first is None:
            # The index allows only smaller windows, which are read next.
            return
        several = reading.shards > 1
        if settles and several != (reading.tie is not None):
            self._several[index, routing] = several
            reading.tie = SEQ_NO if several else None
            yield from reading.read(index)

    def _read_window(self, index: str | None, reading: Reading) -> Steps[None]:
        try:
            yield from reading.read(index)
        except WindowTooLarge:
            raise
        except UnsupportedQuery:
            if not reading.numbers:
                raise
            reading.numbers = False
            yield from reading.read(index)
            # The same query with ids is fine: it was the numbers that this engine does not know.
            self._numbers = False

    def _place(self) -> str | None:
        """Return the key of a hit's place in the one shard there is."""
        return "_doc" if self._can.seq_no else self._tiebreaker

    def _texts(self, index: str | None, body: Mapping[str, Any], options: FoldOptions) -> Texts | None:
        """Return what compares the texts of hits; the first time it is wanted, dictionaries are loaded.

        Raises:
            ConfigError: the request's own ``_source`` does not show these texts.
        """
        if not isinstance(options.explain, Explain) or not options.explain.passages:
            return None
        fields = shown_fields(body.get("_source"), options.explain.fields, self._signed(index))
        return Texts(fields, self._canonical().placed)

    def _stage(self, index: str | None, options: FoldOptions) -> "Steps[TextStage | None]":
        """Return what decides on pairs in doubt; None where nothing asks the texts."""
        copies = options.members_from == "index" and options.min_resemblance is None
        if options.verify != "text" and (options.verify is not None or not copies):
            return None
        if self._stages is None:
            from shinglefold.rerank.fold.text_stage import Stages

            self._stages = Stages(self._canonicalizer)
        scheme = self._scheme
        if options.facts != "any":
            scheme = scheme.with_options(verify="text", facts=options.facts)
        each = yield from self._signed_by_index(index_names(index))
        fields = tuple(dict.fromkeys(field for own in each.values() for field in own))
        wanted = options.verify == "text"
        return self._stages.stage(scheme, fields or self._signed(index), wanted=wanted, by_index=each)

    def _signed_by_index(self, names: Sequence[str]) -> Steps[dict[str, tuple[str, ...]]]:
        """Return the fields that the fingerprints of each index were made of, where not all are the same."""
        told = [self._checked.get(name, {}) for name in names]
        same = len({signed_fields([one]) for one in told}) < 2
        if same and not any(DIFFERING in (one.get("_meta") or {}) for one in told):
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for name in names:
            if name not in self._each:
                try:
                    self._each[name] = yield Call("all_mappings", (name,))
                except PermissionDenied:
                    # A role may read documents and not mappings.
                    self._each[name] = {}
            found |= {index: signed_fields([one]) for index, one in self._each[name].items()}
        return found

    def _signed(self, index: str | None) -> tuple[str, ...]:
        """Return the fields that fingerprints were made of, as recipes tell."""
        return signed_fields(self._checked.get(name, {}) for name in index_names(index))

    def _canonical(self) -> "Canonicalizer":
        if self._canonicalizer is None:
            from shinglefold.canon import Canonicalizer

            self._canonicalizer = Canonicalizer.of(self._scheme)
        return self._canonicalizer

    def _scroll(
        self,
        index: str | None,
        body: JSON,
        options: FoldOptions,
        texts: Texts | None,
        address: Mapping[str, Any],
    ) -> Steps[JSON]:
        tie = SEQ_NO if self._can.seq_no else self._tiebreaker
        if tie is None:
            raise ConfigError("a cursor needs a total order: give the search a tiebreaker")
        key, alive = self._cursor_key, None if self._can.seq_no else self._keep_alive
        cursor = yield from begin_cursor(
            index, body, options, self._scheme, address=address, keep_alive=alive, key=key
        )
        reading = Reading(
            body,
            options,
            self._scheme,
            self._field,
            cursor=cursor,
            texts=texts,
            seal=self._seal,
            own=self._place(),
            lead=self._lead,
        )
        reading.stage = yield from self._stage(index, options)
        reading.tie, reading.pit, reading.keep = tie, cursor.pit, {"keep_alive": self._keep_alive}
        return (yield from read_page(reading, index, cursor, key))

    def _under_own_pit(self, reading: Reading) -> Steps[JSON]:
        """Answer a request that names a point in time."""
        pit = reading.body["pit"]
        tie = self._tiebreaker or (SEQ_NO if self._can.seq_no else None)
        if not (isinstance(pit, Mapping) and isinstance(pit.get("id"), str)):
            # The engine says what is wrong with it.
            yield Call("search", (None, dict(reading.body)))
        if tie is not None and can_go_on(reading.body, tie):
            yield from reading.read_under(pit["id"], dict(pit), tie)
        else:
            yield from reading.read_more(None)
            reading.pit, reading.keep = pit["id"], dict(pit)
        return (yield from answer_page(reading, None))

    def _under_pit(self, index: str | None, reading: Reading, tie: str) -> Steps[JSON]:
        """Go on under a point in time, or where none can be had by longer windows."""
        try:
            pit = yield Call("open_pit", (index, self._keep_alive))
        except EngineError:
            yield from reading.read_more(index)
            return (yield from answer_page(reading, index))
        reading.pit = pit
        try:
            yield from reading.read_under(pit, {"keep_alive": self._keep_alive}, tie)
            return (yield from answer_page(reading, index))
        finally:
            yield Call("close_pit", (reading.pit,))

    def _check_index(self, index: str | None, options: FoldOptions) -> Steps[None]:
        """Refuse an index of another recipe, and fields it has not.

        One without any recipe is searched, and its hits are not folded.
        """
        names = index_names(index)
        wanted = named_fields(options)
        for name in names:
            if name not in self._checked:
                yield from self._look(name)
        if Matcher.of(self._scheme, options).min_shared:
            for name in names:
                check_keywords(self._checked[name], name, self._field)
        check_scopes(
            [self._checked[name] for name in names], str(index), [one.field for one in options.scope]
        )
        if not names or all(self._knows(names, field) for field in wanted):
            return
        # Documents may have brought the field since the mappings were read.
        for name in names:
            yield from self._look(name)
        check_fields([self._checked[name] for name in names], str(index), wanted, "ext.dedup")

    def _knows(self, names: Sequence[str], field: str) -> bool:
        return any(knows(self._checked[name], field) for name in names)

    def _look(self, name: str) -> Steps[None]:
        try:
            mappings = yield Call("mappings", (name,))
        except PermissionDenied:
            # A role may read documents and not mappings; each fingerprint names its scheme, too.
            self._checked[name] = _UNKNOWN
            return
        check_recipe(mappings, name, self._scheme, self._field, self._seal)
        self._checked[name] = mappings
