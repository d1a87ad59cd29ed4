"""Searches for passages, blocking and awaited."""

from dataclasses import replace
from typing import Any, overload

from shinglefold.awaited import AsyncEngine
from shinglefold.checks import check_options
from shinglefold.contracts import Engine
from shinglefold.errors import ShinglefoldError
from shinglefold.rerank.matching.options import MatchOptions
from shinglefold.rerank.matching.pages import MatchPage
from shinglefold.rerank.matching.steps import MatchSteps
from shinglefold.rerank.similar.faces import AwaitedFace, BlockingFace
from shinglefold.seal import Seal


class MatchSearch(MatchSteps[Engine], BlockingFace[str, MatchOptions, MatchPage]):
    """Finds documents that have passages of texts; knows the recipes of the indices it has searched.

    What is wanted is a text. An index that stores no elements of passages is refused by a ``ConfigError``.
    Beside the request it costs about .5 µs a word of the candidates' texts. For what is made with it:
    ``MatchSteps``.
    """


class AsyncMatchSearch(MatchSteps[AsyncEngine], AwaitedFace[str, MatchOptions, MatchPage]):
    """``MatchSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True


@overload
def find_matches(
    engine: Engine,
    index: str,
    text: str,
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> MatchPage: ...
@overload
def find_matches(
    engine: Engine,
    index: str,
    text: list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> list[MatchPage | ShinglefoldError]: ...
def find_matches(
    engine: Engine,
    index: str,
    text: str | list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,
) -> MatchPage | list[MatchPage | ShinglefoldError]:
    """Return the documents of an index that have passages of a text, or of each of a list, best first.

    Args:
        more: single options by name, such as ``min_share=0.2``.

    Who asks more than once keeps a ``MatchSearch``, which reads the recipe and the dictionaries once.
    """
    check_options(options, MatchOptions, more)
    search, chosen = MatchSearch(engine, seal=seal), replace(options or MatchOptions(), **more)
    if isinstance(text, list):
        return search.find_each(index, text, chosen)
    return search.find(index, text, chosen)


async def find_matches_async(
    engine: AsyncEngine,
    index: str,
    text: str | list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> MatchPage | list[MatchPage | ShinglefoldError]:
    """Return the documents of an index that have passages of a text, or of each; see ``find_matches``."""
    check_options(options, MatchOptions, more)
    search, chosen = AsyncMatchSearch(engine, seal=seal), replace(options or MatchOptions(), **more)
    if isinstance(text, list):
        return await search.find_each(index, text, chosen)
    return await search.find(index, text, chosen)
