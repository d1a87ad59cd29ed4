"""Copies found anywhere in an index, wherever they rank."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from shinglefold.awaited import AsyncEngine
from shinglefold.checks import check_options
from shinglefold.contracts import Engine, Parameters
from shinglefold.errors import ShinglefoldError
from shinglefold.model import Fingerprint
from shinglefold.rerank.similar.asked import Asked
from shinglefold.rerank.similar.faces import AwaitedFace, BlockingFace
from shinglefold.rerank.similar.lookup import Found
from shinglefold.rerank.similar.options import SimilarOptions
from shinglefold.rerank.similar.pages import SimilarPage
from shinglefold.rerank.similar.steps import SimilarSteps, Wanted
from shinglefold.rerank.steps import run, run_async
from shinglefold.seal import Seal


class SimilarSearch(SimilarSteps[Engine], BlockingFace[Wanted, SimilarOptions, SimilarPage]):
    """Finds the copies of documents in an index; knows the recipes of the indices it has searched.

    What is wanted is the id of a stored document, index and id where several indices have it, a fingerprint,
    or an ``Asked``, which has the values of scopes as well. Of several, ``among`` has the others of the batch
    that match. Beside what faces raise there are ``InputError`` (no such document, or it can't be compared)
    and ``SchemeMismatch``. An id costs another request, and so do sources. For what is made with it:
    ``SimilarSteps``.
    """

    def look_up(
        self,
        index: str,
        prints: Sequence[Fingerprint | Asked],
        options: SimilarOptions | None = None,
        *,
        parameters: Parameters | None = None,
    ) -> list[Found]:
        """Return for each fingerprint the stored documents that match it, with one request for all.

        The plain part of ``find``, for who decides about many documents a second: no sources, no pages.
        ``options.window`` bounds the candidates of each; ``Found.complete`` tells whether it did. Each match
        tells the number of its group and, on servers, what guards a write (``seq_no``, ``primary_term``).

        Args:
            parameters: what the engine takes in the address, such as ``preference``.

        Raises:
            as ``find``; an error of one search is raised for all.
        """
        return run(self._engine, self._look_up(index, prints, options, parameters))


class AsyncSimilarSearch(SimilarSteps[AsyncEngine], AwaitedFace[Wanted, SimilarOptions, SimilarPage]):
    """``SimilarSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True

    async def look_up(
        self,
        index: str,
        prints: Sequence[Fingerprint | Asked],
        options: SimilarOptions | None = None,
        *,
        parameters: Parameters | None = None,
    ) -> list[Found]:
        """Return for each fingerprint the stored documents that match; see ``SimilarSearch.look_up``."""
        return await run_async(self._engine, self._look_up(index, prints, options, parameters))


@overload
def find_similar(
    engine: Engine,
    index: str,
    wanted: Wanted,
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> SimilarPage: ...
@overload
def find_similar(
    engine: Engine,
    index: str,
    wanted: list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> list[SimilarPage | ShinglefoldError]: ...
def find_similar(
    engine: Engine,
    index: str,
    wanted: Wanted | list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,
) -> SimilarPage | list[SimilarPage | ShinglefoldError]:
    """Return the copies of a document of an index, or of each of a list, wherever they rank.

    Args:
        wanted: an id, index and id, a fingerprint, an ``Asked``, or a list of those.
        more: single options by name, such as ``min_resemblance=0.8``.

    Who asks more than once keeps a ``SimilarSearch``, which reads the recipe of an index once.
    """
    check_options(options, SimilarOptions, more)
    search, chosen = SimilarSearch(engine, seal=seal), replace(options or SimilarOptions(), **more)
    if isinstance(wanted, list):
        return search.find_each(index, wanted, chosen)
    return search.find(index, wanted, chosen)


async def find_similar_async(
    engine: AsyncEngine,
    index: str,
    wanted: Wanted | list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> SimilarPage | list[SimilarPage | ShinglefoldError]:
    """Return the copies of a document of an index, or of each of a list; see ``find_similar``."""
    check_options(options, SimilarOptions, more)
    search, chosen = AsyncSimilarSearch(engine, seal=seal), replace(options or SimilarOptions(), **more)
    if isinstance(wanted, list):
        return await search.find_each(index, wanted, chosen)
    return await search.find(index, wanted, chosen)
