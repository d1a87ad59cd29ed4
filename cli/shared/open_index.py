"""Open an index for a command: its recipe, pipeline, seal, and stored documents."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shinglefold.api.index_recipe import with_languages, words_of_index
from shinglefold.cli.shared.definitions import chosen_scheme
from shinglefold.cli.shared.next_commands import replace_word
from shinglefold.cli.shared.output import printable, remark
from shinglefold.cli.shared.recipe import (
    Target,
    check_field,
    check_target,
    chosen_languages,
    is_set_up,
    recipe_of_index,
    recipe_of_template,
)
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines import is_server, open_engine
from shinglefold.errors import ConfigError, IndexMissing, InputError, SchemeMismatch
from shinglefold.model.recipe import Recipe, with_never_differ, with_passages
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.stored_fingerprint import placeholder_query
from shinglefold.registry import check_versions

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.shared.command import Invocation
    from shinglefold.ingest import Pipeline
    from shinglefold.settings import Settings


def load_lexicon(canonicalizer: "Canonicalizer", settings: "Settings") -> None:
    """Load the words learned by earlier runs, if the setting ``lexicon_file`` names a file."""
    if settings.lexicon_file:
        canonicalizer.lexicon.load(settings.lexicon_file)


def save_lexicon(canonicalizer: "Canonicalizer", settings: "Settings") -> None:
    """Save the words learned for later runs, if the setting ``lexicon_file`` names a file."""
    if not settings.lexicon_file:
        return
    try:
        canonicalizer.lexicon.save(settings.lexicon_file)
    except InputError as error:
        # The run itself went well, and the words can be learned again.
        remark(f"note: {printable(error)}")


def seal_of_settings(settings: "Settings") -> Seal | None:
    """Return the seal of the setting ``seal_key``, None without one.

    Raises:
        ConfigError: the key is not valid.
    """
    return Seal.parse(settings.seal_key) if settings.seal_key else None


def seal_of_index(target: Target, recipe: Recipe) -> Seal | None:
    """Return the seal of an index, None if it is not sealed; write a note if a key is set nevertheless.

    Raises:
        ConfigError: the index is sealed with another key than the setting, or there is no setting.
    """
    seal = seal_of_settings(target.settings)
    if recipe.sealed:
        check_sealed(recipe.sealed, seal, f"index {target.index!r}")
        return seal
    if seal is not None:
        seal_it = target.setup_and_backfill(seal=True)
        note = f"note: index {target.index!r} is not sealed, though a key is set; to seal it: {seal_it}"
        remark(printable(note))
    return None


def needed_seal(settings: "Settings") -> Seal:
    """Return the seal of the setting ``seal_key``, which ``--seal`` needs.

    Raises:
        ConfigError: there is no key, or it is not valid.
    """
    seal = seal_of_settings(settings)
    if seal is None:
        raise ConfigError(
            "--seal needs a key: set SHINGLEFOLD_SEAL_KEY, or seal_key in the settings file, to a text of 16 "
            "bytes or more that nobody else knows"
        )
    return seal


#: The most documents of one id that are fetched: one in each index, and under each routing.
_SAME_ID = 1000
#: The most ids that a message shows if one is missing.
_NAMED_IDS = 3


class Store(NamedTuple):
    """An open engine, the recipe of an index, and the mappings of each index behind its name."""

    engine: Engine
    recipe: Recipe
    mappings: dict[str, JSON]

    @property
    def scheme(self) -> Scheme:
        """The scheme of the index."""
        return self.recipe.scheme

    @property
    def field(self) -> str:
        """The field of its fingerprints."""
        return self.recipe.field


@contextmanager
def open_store(target: Target, *, groups: bool = False) -> Iterator[Store]:
    """Open the engine of an index to search it.

    Args:
        groups: the message about a missing index names the command for one with groups.

    Raises:
        IndexMissing: there is no such index.
        ConfigError: the index was not set up for fingerprints.
        RecipeMismatch: a setting names another field than the index has.
    """
    recipe, found = recipe_of_index(target, groups=groups)
    check_field(target, recipe)
    words = None if is_server(target.where) else words_of_index(recipe.scheme)
    with closing(open_engine(target.where, words)) as engine:
        yield Store(engine, recipe, found)


def pipeline_for_index(
    target: Target, invocation: "Invocation", *, fresh: bool = False, pages: bool = False
) -> tuple["Pipeline", Recipe]:
    """Return the pipeline and the recipe of an index: the stored ones, or those of a new index.

    Args:
        fresh: ignore a stored recipe, because the index will be rebuilt.
        pages: a new index is for files of HTML.

    Raises:
        RecipeMismatch: a flag or setting contradicts the index.
    """
    if not fresh:
        try:
            recipe: Recipe | None = recipe_of_index(target)[0]
        except IndexMissing:
            recipe = recipe_of_template(target)
        if recipe is not None:
            return stored_pipeline(target, recipe)
    return new_pipeline(target, invocation, pages=pages)


def stored_pipeline(target: Target, recipe: Recipe) -> tuple["Pipeline", Recipe]:
    """Return the pipeline of a stored recipe, and the recipe.

    Raises:
        RecipeMismatch: a flag or setting contradicts the index.
    """
    check_target(target, recipe)
    check_dictionaries(target, recipe)
    pipeline = parse_pipeline(recipe.pipeline, recipe.scheme, seal_of_index(target, recipe))
    return pipeline, pipeline.recipe(recipe.field).with_notes_of(recipe)


def new_pipeline(
    target: Target, invocation: "Invocation", *, pages: bool = False
) -> tuple["Pipeline", Recipe]:
    """Return the pipeline and the recipe of a new index, from flags and settings.

    Args:
        pages: it is for files of HTML.
    """
    from shinglefold.ingest import default_definition

    settings = target.settings
    scheme = chosen_scheme(invocation, target.preset, target.profile)
    if target.languages:
        codes, _ = chosen_languages(target)
        scheme = with_languages(scheme, codes, settings.canon_options(), dict(settings.language))
    definition = target.definition(settings.field, pages=pages) or default_definition(
        settings.field, pages=pages
    )
    if facts := target.facts():
        definition = with_never_differ(definition, settings.field, facts)
    pipeline = parse_pipeline(definition, scheme, seal_of_settings(settings))
    field = settings.field if "field" in settings.given else None
    return pipeline, replace(pipeline.recipe(field), profile=target.profile or "")


def parse_pipeline(definition: Mapping[str, Any], scheme: Scheme, seal: Seal | None = None) -> "Pipeline":
    """Parse a pipeline, and check that it makes fingerprints.

    Raises:
        ConfigError: it is not valid, or makes none.
    """
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.pipeline.steps import makes_fingerprints

    pipeline = Pipeline.from_json(definition, scheme, seal=seal)
    if not makes_fingerprints(pipeline.steps):
        raise ConfigError(
            "the pipeline makes no fingerprints, so nothing would ever fold: add a step such as "
            '{"supershingle": {"fields": ["title", "body"]}}'
        )
    return pipeline


def check_dictionaries(target: Target, recipe: Recipe) -> None:
    """Check that the dictionaries of an index have the versions that it was made with."""
    try:
        check_versions(recipe.scheme.languages)
    except SchemeMismatch as error:
        codes = ",".join(ref.code for ref in recipe.scheme.languages)
        change = target.setup_and_backfill(languages=codes)
        how = change if is_server(target.where) else target.rebuild_command()
        remedy = f"Install the version it was made with, or move the index to this one: {how}"
        where = f"index {target.index!r}"
        raise SchemeMismatch(error.found, error.expected, where, remedy) from error


def stored_hit(store: Store, target: Target, given: str, typed: Sequence[str], missing: str = "") -> JSON:
    """Return the hit of a stored document.

    The document is searched for, because an alias may have several indices, and filter their documents.

    Args:
        given: its id, or ``INDEX/ID`` if several of these indices have it.
        typed: the words of the command, which the message repeats for each of several documents.
        missing: the beginning of the message if there is no such document.

    Raises:
        InputError: there is none, or there are several.
    """
    index = target.index
    hits = _hits_in_index(store, index, given) or same_id(store, index, given)
    if not hits:
        raise InputError(
            f"{missing or f'no document {given!r}'} in the index {index!r}, {_known_ids(store, target)}"
        )
    if len(hits) > 1:
        raise _ambiguous_id(given, hits, typed)
    return hits[0]


def _known_ids(store: Store, target: Target) -> str:
    """Return a clause that shows some ids of the index."""
    body = {
        "query": {"bool": {"must_not": [placeholder_query(store.field)]}},
        "size": _NAMED_IDS,
        "_source": False,
    }
    hits = store.engine.search(target.index, body)["hits"]["hits"]
    if not hits:
        return "which has no documents"
    search = target.hints.command("search", "WORDS", index=target.index, json=True, no_fold=True)
    return (
        f"whose ids are such as {', '.join(repr(hit['_id']) for hit in hits)}; a search shows them: {search}"
    )


def same_id(store: Store, index: str, id_: str) -> list[JSON]:
    """Return the hits of one id: one in each index, and under each routing."""
    body = {"query": {"ids": {"values": [id_]}}, "size": _SAME_ID}
    hits: list[JSON] = store.engine.search(index, body)["hits"]["hits"]
    return hits


def _hits_in_index(store: Store, index: str, given: str) -> list[JSON]:
    """Return the hits of ``INDEX/ID``; none if it is not such a pair."""
    name, _, id_ = given.partition("/")
    if not id_ or name not in store.mappings:
        return []
    return [hit for hit in same_id(store, index, id_) if hit["_index"] == name]


def _ambiguous_id(given: str, hits: list[JSON], typed: Sequence[str]) -> InputError:
    names = sorted(f"{hit['_index']}/{hit['_id']}" for hit in hits)
    if len(set(names)) < len(names):
        return InputError(
            f"there are several documents {given!r} in one index, under several routings, which have no "
            "names of their own; give the text of the one that is meant instead"
        )
    commands = "; ".join(replace_word(typed, given, name) for name in names)
    return InputError(f"there are several documents {given!r}; name one by its index: {commands}")


def no_passages(target: Target, otherwise: str = "") -> ConfigError:
    """Return the error for an index without the elements of passages; ``otherwise`` is another remedy."""
    return ConfigError(
        f"index {target.index!r} does not store the elements of passages. To store them: "
        f"{target.setup_and_backfill(passages=True)}{otherwise}"
    )


def add_passages(
    target: Target, pipeline: "Pipeline", recipe: Recipe, *, fresh: bool
) -> tuple["Pipeline", Recipe]:
    """Return the pipeline and the recipe of a new index that also stores elements of passages.

    Raises:
        ConfigError: the index exists and does not store them.
    """
    if not fresh and is_set_up(target):
        raise no_passages(target, "; or rebuild the index: --recreate")
    definition = with_passages(recipe.pipeline or {}, recipe.field)
    return (
        parse_pipeline(definition, recipe.scheme, pipeline.tools.seal),
        replace(recipe, pipeline=definition),
    )
