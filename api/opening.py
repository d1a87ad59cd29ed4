"""``shinglefold.open``: read the recipe of an index, compare the arguments with it, return the open index."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.api.index_options import IndexOptions
from shinglefold.api.index_recipe import common_recipe, mappings_or_none, missing_index, words_of_index
from shinglefold.contracts.engine import Engine
from shinglefold.engines import folder_of, open_engine
from shinglefold.model.recipe import Recipe, missing_recipe
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.request.fold_options import OnTrouble
from shinglefold.settings import load_settings


def open(  # noqa: A001 - documented, each with a default
    where: Any,  # noqa: ANN401 - a folder, an address, a client, an engine
    index: str,
    *,
    text: Sequence[str] | None = None,
    languages: Sequence[str] | None = None,
    fingerprint_field: str | None = None,
    similarity: float | None = None,
    profile: str | None = None,
    never_differ: Sequence[str] | None = None,
    dedup: FoldOptions | Mapping[str, Any] | None = None,
    policy: Any = "refuse",  # noqa: ANN401 - a name or a Policy
    seal_key: str | None = None,
    cursor_key: bytes | str | None = None,
    on_trouble: OnTrouble = "unfolded",
) -> "FoldedIndex":
    """Open an index that ``shinglefold.setup`` or ``shinglefold index`` made.

    Args:
        where: a folder, the address of a server, a ``shinglefold.engines.Connection``, a client of
            opensearch-py or elasticsearch-py, or an engine; both are used unchanged and stay open.
        index: an index, an alias or a pattern.
        text: the fields whose texts are compared; must be those of the index.
        languages: codes; must be those of the index.
        fingerprint_field: must be that of the index.
        similarity: the edit similarity of words, 0 to 1, from which texts are near-duplicates; by
            default that of the index (0.8 unless set), which signatures estimate on pages of results.
        profile, never_differ: must be those of the index; ``shinglefold.setup`` sets them.
        dedup: defaults for ``ext.dedup`` of requests, such as ``{"representative": "newest:date"}``.
        policy: what ``add`` does with a near-duplicate: ``"refuse"``, ``"tag"`` (number its group), or a
            ``Policy`` (from ``shinglefold.grouping``).
        seal_key, cursor_key: by default those of the settings.
        on_trouble: what a search does where fingerprints can't be read: ``"unfolded"`` returns the engine's
            own page and says why in ``dedup``, ``"raise"`` raises an error.

    Raises:
        IndexMissing: there is no such index; the message has the call that makes it.
        ConfigError: it was not set up for fingerprints, or an argument is not valid.
        RecipeMismatch: an argument contradicts the index.
        EngineError: the engine can't be reached.
    """
    options = IndexOptions.parse(
        text=text,
        languages=languages,
        fingerprint_field=fingerprint_field,
        similarity=similarity,
        profile=profile,
        never_differ=never_differ,
        dedup=dedup,
        policy=policy,
        seal_key=seal_key,
        cursor_key=cursor_key,
        on_trouble=on_trouble,
    )
    settings = load_settings()
    if isinstance(where, Engine):
        recipe = read_recipe(where, index, options)
        return FoldedIndex(where, index, recipe, options, settings, owns_engine=False)
    engine, recipe = _open_with_recipe(where, index, options)
    try:
        return FoldedIndex(engine, index, recipe, options, settings)
    except BaseException:
        engine.close()
        raise


def _open_with_recipe(where: Any, index: str, options: IndexOptions) -> tuple[Engine, Recipe]:  # noqa: ANN401
    """Return an open engine, ready to search, and the recipe of an index.

    The embedded engine is opened twice: the recipe says how queries are split into words.
    """
    engine = open_engine(where)
    try:
        recipe = read_recipe(engine, index, options)
        if not isinstance(where, str | PathLike) or folder_of(str(where)) is None:
            return engine, recipe
    except BaseException:
        engine.close()
        raise
    engine.close()
    return open_engine(where, words_of_index(recipe.scheme)), recipe


def _call(name: str, index: str, **_: object) -> str:
    """Return the call of this module that is equivalent to a command."""
    calls = {"setup": f'shinglefold.setup(…, {index!r}, text=["title", "body"])'}
    return calls.get(name, f"shinglefold.open(…, {index!r}).{name}()")


def read_recipe(
    engine: Engine, index: str, options: IndexOptions, command: Callable[..., str] = _call
) -> Recipe:
    """Return the recipe of an index after comparing it with the arguments.

    Args:
        command: returns the remedy for messages, as a call or a command, by its name.

    Raises:
        IndexMissing, ConfigError, RecipeMismatch: see ``open``.
    """
    found = mappings_or_none(engine, index)
    if not found:
        raise missing_index(engine, index, f"To make {index!r}: {command('setup', index)}")
    recipe = common_recipe(
        found,
        lambda name: missing_recipe(found[name], name, command),
        lambda first, other: (
            f"the indices {first[0]!r} and {other[0]!r} behind {index!r} have different recipes; open each "
            "by its own name, or set both up alike"
        ),
    )
    options.check(recipe, index)
    return recipe
