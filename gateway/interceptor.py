"""The interceptor: answers requests of the engines' REST API by generators that do no I/O."""

from collections.abc import Callable, Mapping
from typing import Any

from shinglefold.api.index_options import IndexOptions
from shinglefold.errors import InputError
from shinglefold.gateway.bulks.signed_bulks import SignedBulks
from shinglefold.gateway.indices import KnownIndices
from shinglefold.gateway.rest import Operation, RestRequest, RestResponse, Steps, operation_of
from shinglefold.gateway.searches import FoldedSearches
from shinglefold.gateway.writes import SignedWrites
from shinglefold.rerank.search_steps import SearchSteps
from shinglefold.settings import Settings

_Handler = Callable[[Operation, RestRequest], Steps[RestResponse | None]]


class Interceptor:
    """Folds searches and signs writes of indices with a recipe; other requests are sent unchanged.

    Args:
        engine: an engine, blocking or awaited, which says what it can; it is not called.
        kind: ``FoldedSearch`` or ``AsyncFoldedSearch``, as the engine blocks or is awaited.
        options: as of ``shinglefold.open``.
        always: fold searches that have no ``ext.dedup``, too.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        kind: type[SearchSteps[Any]],
        options: IndexOptions,
        settings: Settings,
        *,
        always: bool = False,
    ) -> None:
        self.indices = indices = KnownIndices(options, settings)
        searches = FoldedSearches(engine, kind, options, settings, indices, always=always)
        writes = SignedWrites(indices)
        self.bulks = bulks = SignedBulks(indices)
        self._handlers: Mapping[str, _Handler] = {
            "search": searches.search,
            "search_template": searches.search_template,
            "msearch": searches.msearch,
            "msearch_template": searches.msearch,
            "bulk": bulks.bulk,
            "bulk_stream": bulks.bulk,
            "index": writes.write,
            "create": writes.write,
            "update": writes.update,
            "update_by_query": writes.warn_unsigned,
            "reindex": writes.warn_unsigned,
        }

    def steps(self, request: RestRequest) -> Steps[RestResponse | None]:
        """Return the response to a request; None if it passes unchanged.

        The steps yield ``Call`` and ``Tiebreaker`` (to an engine), ``Send`` (a request to forward),
        ``Admit`` (to the gate of an index) and ``Work``. Errors of the engine are raised at the ``yield``.

        Raises:
            InputError: the body is nested too deeply. Others as the steps of each operation.
        """
        operation = operation_of(request.method, request.path)
        if operation is None:
            return None
        try:
            return (yield from self._handlers[operation.name](operation, request))
        except RecursionError as error:
            raise InputError("the JSON is nested too deeply to be read here: send it flatter") from error
