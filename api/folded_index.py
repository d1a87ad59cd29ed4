"""An open index: folded searches, copies, passages, writing, and maintenance, in one object."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from shinglefold.api.documents import (
    named_searches,
    query_document,
    scope_fields,
    sign_documents,
    text_watch,
    warn_of_unread,
)
from shinglefold.api.index_options import IndexOptions, match_options, similar_options
from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.errors import EngineError, ShinglefoldError, counted
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.writing.accounting import Progress, Summary
from shinglefold.ingest.writing.indexer import check_documents
from shinglefold.ingest.writing.target_index import IndexWatch
from shinglefold.maintenance import (
    BackfillOptions,
    BackfillSummary,
    Diagnosis,
    DoctorOptions,
    backfill,
    diagnose,
)
from shinglefold.maintenance.deletion import delete, plan_deletion
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Scheme, thresholds
from shinglefold.model.seal import Seal
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_path, check_type
from shinglefold.registry import check_versions
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope
from shinglefold.rerank.engine_calls import run
from shinglefold.rerank.explanation import PairExplanation, explain_pair
from shinglefold.rerank.matching import MatchPage, MatchSearch
from shinglefold.rerank.similar import QueryDocument, SimilarPage, SimilarSearch
from shinglefold.rerank.similar.search import stored_document
from shinglefold.settings import Settings

if TYPE_CHECKING:
    from shinglefold.grouping import Gate, Verdict
    from shinglefold.grouping.regroup import IndexGroups

#: A stored document by its id, or by index and id; or a document that need not be stored.
Wanted = str | tuple[str, str] | Mapping[str, Any]


@dataclass(eq=False, repr=False)
class FoldedIndex:
    """An open index. Made by ``shinglefold.open``; a context manager; threads may share it.

    search, pages, msearch: one hit for each group of near-duplicates.
    similar, matches, explain: copies of a document, passages of a text, why two documents fold.
    index, sign, add, delete: write documents. groups, backfill, doctor: the whole index.
    """

    engine: Engine
    name: str
    recipe: Recipe
    options: IndexOptions = field(default_factory=IndexOptions)
    settings: Settings = field(default_factory=Settings)
    #: Whether ``close`` closes the engine.
    owns_engine: bool = True

    def __post_init__(self) -> None:
        self.seal: Seal | None = self.options.seal(self.recipe, self.settings, self.name)
        self._lock = Lock()
        self._gate: Gate | None = None

    def __repr__(self) -> str:
        return f"<FoldedIndex {self.name!r} of {', '.join(self.recipe.fields)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; a client or an engine that was handed in stays open."""
        try:
            if self._gate is not None:
                self._gate.close()
        finally:
            self._gate = None
            if self.owns_engine:
                self.engine.close()

    # Search

    def search(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of results in the engine's own shape, one hit a group.

        Args:
            body: a search request; ``from`` and ``size`` count groups; ``ext.dedup`` has options.
            params: parameters of the address (``routing``, ``preference``), also as keywords.

        Returns:
            The engine's response; folded hits under ``inner_hits.duplicates``, counters under ``dedup``.

        Raises:
            ConfigError: a part of the request is not valid.
            EngineError: the engine refuses, or does not answer.
        """
        return self._search.search(self.name, body, self._fold, params=params, **parameters)

    def pages(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> Iterator[JSON]:
        """Yield pages until the results end; no group is on two of them. See ``search``."""
        return self._search.pages(self.name, body, self._fold, params=params, **parameters)

    def msearch(self, bodies: Iterable[Mapping[str, Any]]) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several requests, or the error of that one. See ``search``."""
        return self._search.msearch(named_searches(self.name, bodies), self._fold)

    def similar(
        self,
        wanted: Wanted | Fingerprint,
        *,
        size: int = 10,
        similarity: float | None = None,
        scope: str | Sequence[str] = (),
        filters: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
        source: Any = True,  # noqa: ANN401 - a filter as engines take it
        after: str | None = None,
    ) -> SimilarPage:
        """Return the near-duplicates of a document in the whole index, the most alike first.

        Args:
            wanted: the id of a stored document, or (index, id); or a document, as ``index`` takes it.
            size: the number of documents on a page. ``after``: ``next`` of the page before.
            similarity: see ``shinglefold.open``; by default the value that the index was opened with.
            scope: fields whose values must be those of the document. ``filters``: queries to match.
            source: the ``_source`` filter of what is found.

        Raises:
            InputError: there is no such document, or it has no text.
            ConfigError: an option is not valid.
        """
        options, scopes = similar_options(
            self.options, size=size, similarity=similarity, scope=scope, filters=filters, source=source
        )
        query = self.query_document(wanted, scopes) if isinstance(wanted, Mapping) else wanted
        return self._similar.find(self.name, query, options, place=after)

    def matches(
        self,
        text: str,
        *,
        size: int = 10,
        min_share: float = 0.05,
        filters: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
        source: Any = True,  # noqa: ANN401 - a filter as engines take it
        after: str | None = None,
    ) -> MatchPage:
        """Return the documents that contain passages of a text, the largest share first.

        The index must have been set up for it: ``shinglefold.setup(…, passages=True)``.

        Args:
            min_share: the share of the text's words that a document must have, 0 to 1.
            size, filters, source, after: see ``similar``.

        Raises:
            ConfigError: the index was not set up for it, or an option is not valid.
        """
        options = match_options(min_share=min_share, filters=filters, size=size, source=source)
        return self._matches.find(self.name, text, options, place=after)

    def explain(self, a: str | tuple[str, str], b: str | tuple[str, str]) -> JSON:
        """Return why two documents fold or not on a page of ``search``; name each by id, or (index, id).

        Raises:
            InputError: there is no such document, or it has no fingerprint.
        """
        return self.explained_pair(a, b).to_json()

    def explained_pair(self, a: str | tuple[str, str], b: str | tuple[str, str]) -> PairExplanation:
        """Return the explanation of ``explain`` with the two hits, their texts, and the passages in these."""
        self._watch.check_if_due()
        mappings = self.engine.all_mappings(self.name)
        shown = scope_fields(() if self._fold is None else self._fold.scope, list(mappings.values()))
        hits = self.stored_hit(a, shown), self.stored_hit(b, shown)
        return explain_pair(
            hits,
            self.scheme,
            self.recipe.field,
            self.recipe.fields,
            seal=self.seal,
            mappings=mappings,
            options=self._fold,
        )

    # Write

    def sign(self, documents: Iterable[Mapping[str, Any]], *, workers: int = 1) -> Iterator[Document]:
        """Yield each document with its fingerprint, in order, for an indexer of your own.

        Only the field of fingerprints is added or replaced. ``workers``: processes, 0 for one a core.

        Raises:
            InputError: a document can't be signed; the message names it. Earlier ones were yielded.
            IndexChanged: the recipe of the index has changed; open the index again.
        """
        self._watch.check_if_due()
        return sign_documents(self.pipeline, self.recipe.field, documents, workers, self._watch.check_if_due)

    def index(
        self,
        documents: Iterable[Mapping[str, Any]],
        *,
        dead_letters: str | PathLike[str] | None = None,
        routing_field: str = "",
        workers: int = 1,
        progress: Callable[[Progress], None] | None = None,
    ) -> Summary:
        """Write documents with their fingerprints; replace documents with the same ids.

        Args:
            documents: dictionaries of fields; ``_id`` or ``id`` is the id, ``_routing`` the routing.
                ``shinglefold.ingest.read(path)`` yields the documents of a file.
            routing_field: the field of the routing, such as the id of the parent in a ``join`` field.
            dead_letters: a file for documents that fail; without one they are only counted.
            workers: processes; 0 means one for each core.
            progress: called after each block.

        Returns:
            Counts that add up; ``stopped`` says why the run ended early, "" if it did not.

        Raises:
            ConfigError: an argument is not valid.
        """
        from shinglefold.grouping.numbering import Numbering

        check_documents(documents)
        # The number of documents tells the pipeline how much text to expect.
        sized = isinstance(documents, Sized)
        watch = text_watch(self.pipeline, self.recipe, documents if sized else ())
        numbering = None
        if self.recipe.groups:
            numbering = Numbering(self.engine, self.name, self.recipe, self.seal)
        try:
            summary = index_documents(
                self.engine,
                self.name,
                documents if sized else watch.watch(documents),
                self.pipeline,
                field=self.recipe.field,
                dead_letters=None if dead_letters is None else check_path("dead_letters", dead_letters),
                workers=workers,
                progress=progress,
                groups=numbering,
                routing_field=routing_field,
                noted=self.recipe,
            )
        finally:
            if numbering is not None:
                numbering.marker.end()
        return replace(summary, notes=(*summary.notes, *warn_of_unread(watch, self.name)))

    def add(self, document: Document) -> "Verdict":
        """Write one document unless it is a near-duplicate of a stored one; safe with concurrent writers.

        Returns:
            The id of the document, and the number of its group if the index numbers groups.

        Raises:
            Refused: it resembles a stored document (``like``), or breaks another rule of the policy.
            EngineError: the engine fails.

        Cost: a few requests; documents that threads add at the same time share them.
        """
        verdict = self.gate.add(document)
        warn_of_unread(text_watch(self.pipeline, self.recipe, [document]), self.name)
        return verdict

    def add_all(self, documents: Sequence[Document]) -> "list[Verdict]":
        """Write the documents that are not near-duplicates; return a verdict for each document."""
        verdicts = self.gate.add_all(documents)
        warn_of_unread(text_watch(self.pipeline, self.recipe, documents), self.name)
        return verdicts

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents by their ids, return how many there were; raise ``EngineError`` if one stays."""
        if isinstance(ids, str):
            ids = [ids]
        check_type("ids", ids, Sequence, "a list of strings")
        if not ids:
            return 0
        # Documents are found by a search, which needs a refresh to show the newest ones.
        self.engine.refresh(self.name)
        plan = plan_deletion(self.engine, self.name, ids)
        if not plan.documents:
            return 0
        result = delete(self.engine, plan)
        if result.failures:
            reasons = "; ".join(dict.fromkeys(failure.reason for failure in result.failures))
            raise EngineError(f"not deleted: {counted(len(result.failures), 'document')}: {reasons}")
        return result.indexed

    # The whole index

    def groups(self) -> "IndexGroups":
        """Return the groups of near-duplicates of the whole index; nothing is written.

        Every member of a group resembles the first one. ``without_fingerprint`` counts those that can't be
        compared: ``backfill`` gives them one. Raises ``IndexChanged``, see ``sign``.
        Cost: a scan of all fingerprints, some 600 bytes a document in memory.
        """
        from shinglefold.grouping.regroup import RegroupOptions, find_groups

        self._watch.check()
        least = self.options.similarity
        options = RegroupOptions() if least is None else RegroupOptions(**thresholds(least))
        return find_groups(self.engine, self.name, options, seal=self.seal)

    def backfill(
        self,
        *,
        only_missing: bool = False,
        requests_per_second: float = 0.0,
        checkpoint: str | PathLike[str] | None = None,
        workers: int = 1,
        allow_poorer: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> BackfillSummary:
        """Give every document the fingerprint of its text, while others write.

        Args:
            only_missing: read only documents without a fingerprint.
            requests_per_second: documents read a second; 0 sets no limit.
            checkpoint: a file from which a later run resumes.
            workers: processes; 0 means one for each core.
            allow_poorer: continue even if most new fingerprints have far less text than the old ones.
        """
        options = BackfillOptions(
            self.recipe.field,
            only_missing=only_missing,
            requests_per_second=requests_per_second,
            checkpoint=None if checkpoint is None else check_path("checkpoint", checkpoint),
            workers=workers,
            allow_poorer=allow_poorer,
        )
        return backfill(self.engine, self.name, self.pipeline, options, progress)

    def doctor(self, *, requests_per_second: float = 0.0, workers: int = 1) -> Diagnosis:
        """Return whether every stored fingerprint is that of its text, and change nothing; see ``healthy``.

        Raises ``IndexChanged``, see ``sign``.
        """
        self._watch.check()
        options = DoctorOptions(self.recipe.field, requests_per_second=requests_per_second, workers=workers)
        return diagnose(self.engine, self.name, self.pipeline, options)

    # The parts of an open index

    @property
    def scheme(self) -> Scheme:
        """The scheme of the index with the threshold of the arguments."""
        return self.options.scheme(self.recipe)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of the index.

        Raises:
            MissingExtra, SchemeMismatch: a language is not installed, or in another version.
        """
        check_versions(self.recipe.scheme.languages)
        return Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self.seal)

    @property
    def canonicalizer(self) -> Canonicalizer:
        """The canonicalizer of the index."""
        return Canonicalizer.of(self.scheme)

    @property
    def gate(self) -> "Gate":
        """The gate of ``add``, opened at first use."""
        from shinglefold.grouping import Gate

        with self._lock:
            if self._gate is None:
                self._gate = Gate(
                    self.engine, self.name, self.options.gate_policy(), pipeline=self.pipeline, seal=self.seal
                )
            return self._gate

    def query_document(self, document: Mapping[str, Any], scopes: Sequence[Scope] = ()) -> QueryDocument:
        """Return a document with the fingerprint it would have; raise ``InputError`` if it has none."""
        self._watch.check_if_due()
        mappings = self.engine.all_mappings(self.name) if scopes else {}
        return query_document(self.pipeline, self.recipe, document, scopes, mappings)

    def stored_hit(self, wanted: str | tuple[str, str], shown: Mapping[str, Any] | None = None) -> JSON:
        """Return the hit of a stored document; raise ``InputError`` if there is none, or several."""
        return run(self.engine, stored_document(self.name, wanted, dict(shown or {})))

    @cached_property
    def _watch(self) -> IndexWatch:
        return IndexWatch(self.engine, self.name, self.pipeline.recipe(self.recipe.field))

    @cached_property
    def _search(self) -> FoldedSearch:
        return FoldedSearch(
            self.engine,
            self.options.scheme,
            None,
            self.engine.tiebreaker(),
            cursor_key=self.options.cursor_secret(self.settings, self.engine, self.name, self.recipe.scheme),
            seal=self.seal,
            on_trouble=self.options.on_trouble,
        )

    @cached_property
    def _similar(self) -> SimilarSearch:
        return SimilarSearch(self.engine, self.options.scheme, seal=self.seal)

    @cached_property
    def _matches(self) -> MatchSearch:
        return MatchSearch(self.engine, seal=self.seal)

    @cached_property
    def _fold(self) -> FoldOptions | None:
        return self.options.fold_options(self.recipe)
