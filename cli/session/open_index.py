"""Opening an engine for a command: with the recipe the index was made with, and words to search by."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.cli.framework.next_commands import chain, instead
from shinglefold.cli.framework.output import printable, remark
from shinglefold.cli.session.recipe import Asked, check_asked, check_field, recipe_of_index, recipe_to_come
from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.engines import is_server, open_engine
from shinglefold.errors import ConfigError, IndexMissing, InputError, SchemeMismatch
from shinglefold.model.recipe import Recipe, with_passages
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.stored_fingerprint import placeholder_query
from shinglefold.registry import check_versions

if TYPE_CHECKING:
    from shinglefold.cli.framework.command import Invocation
    from shinglefold.ingest import Pipeline
    from shinglefold.settings import Settings


def seal_of_settings(settings: "Settings") -> Seal | None:
    """Return the seal of the key that is set, None where none is.

    Raises:
        ConfigError: the key is not valid.
    """
    return Seal.parse(settings.seal_key) if settings.seal_key else None


def seal_of_index(asked: "Asked", recipe: Recipe) -> Seal | None:
    """Return the seal of an index, None where it is not sealed; that is said where a key is set.

    Raises:
        ConfigError: the index is sealed, and the key that is set is another one, or none is.
    """
    seal = seal_of_settings(asked.settings)
    if recipe.sealed:
        check_sealed(recipe.sealed, seal, f"index {asked.index!r}")
        return seal
    if seal is not None:
        change = [asked.hints.command("setup", asked.index, seal=True), asked.command("backfill")]
        told = f"note: index {asked.index!r} is not sealed, though a key is set; to seal it: {chain(change)}"
        remark(printable(told))
    return None


def needed_seal(settings: "Settings") -> Seal:
    """Return the seal of the key that is set.

    Raises:
        ConfigError: none is set, or it is not valid.
    """
    seal = seal_of_settings(settings)
    if seal is None:
        raise ConfigError(
            "--seal needs a key: set SHINGLEFOLD_SEAL_KEY, or seal_key in the settings file, to a text of 16 "
            "bytes or more that nobody else knows"
        )
    return seal


#: Documents of one id that are looked at: one in each index, and under each routing.
_SAME_ID = 1000
#: Ids that are named where one is not there.
_NAMED_IDS = 3
#: Documents that are examined for texts.
_SAMPLE = 20


class Store(NamedTuple):
    """An open engine, the recipe of the index, and its mappings (of each index behind its name)."""

    engine: Engine
    recipe: Recipe
    mappings: dict[str, JSON]

    @property
    def scheme(self) -> Scheme:
        """The scheme of the index."""
        return self.recipe.scheme

    @property
    def field(self) -> str:
        """The field its fingerprints are in."""
        return self.recipe.field


@contextmanager
def opened_store(asked: Asked) -> Iterator[Store]:
    """Open the engine that has an index, under the recipe stored with it.

    Raises:
        IndexMissing: there is no such index.
        ConfigError: the index was not made for fingerprints.
        RecipeMismatch: a setting names another field than the index has.
        SchemeMismatch: a language's dictionary is another than the index was made with.
    """
    recipe, found = recipe_of_index(asked)
    check_field(asked, recipe)
    check_dictionaries(asked, recipe)
    with closing(open_engine(asked.where, search_canonicalizer(recipe.scheme))) as engine:
        yield Store(engine, recipe, found)


def pipeline_of(asked: Asked, invocation: "Invocation", *, fresh: bool = False) -> tuple["Pipeline", Recipe]:
    """Return the pipeline for an index, and its recipe: the stored one, or that of an index to come.

    Args:
        fresh: the index is to be made anew, whatever there is.

    Raises:
        RecipeMismatch: what is asked for contradicts the index.
    """
    if not fresh:
        try:
            known: tuple[Recipe, dict[str, JSON]] | None = recipe_of_index(asked)
        except IndexMissing:
            known = recipe_to_come(asked)
        if known is not None:
            return known_pipeline(asked, known[0])
    return new_pipeline(asked, invocation)


def known_pipeline(asked: Asked, recipe: Recipe) -> tuple["Pipeline", Recipe]:
    """Return the pipeline of an index that is there, and its recipe.

    Raises:
        RecipeMismatch: what is asked for contradicts the index.
    """
    check_asked(asked, recipe)
    check_dictionaries(asked, recipe)
    pipeline = checked_pipeline(recipe.pipeline, recipe.scheme, seal_of_index(asked, recipe))
    made = pipeline.recipe(recipe.field)
    return pipeline, replace(made, groups=recipe.groups, grouping=recipe.grouping)


def new_pipeline(asked: Asked, invocation: "Invocation") -> tuple["Pipeline", Recipe]:
    """Return the pipeline of an index to come, by flags and settings."""
    from shinglefold.cli.options.definitions import chosen_scheme
    from shinglefold.ingest import default_definition

    settings = asked.settings
    scheme = chosen_scheme(invocation, asked.preset)
    definition = asked.definition(settings.field) or default_definition(settings.field)
    pipeline = checked_pipeline(definition, scheme, seal_of_settings(settings))
    field = settings.field if "field" in settings.given else None
    return pipeline, pipeline.recipe(field)


def checked_pipeline(definition: Mapping[str, Any], scheme: Scheme, seal: Seal | None = None) -> "Pipeline":
    """Return a pipeline that makes fingerprints.

    Raises:
        ConfigError: it makes none, or is not valid.
    """
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.pipeline.field_usage import makes_fingerprints

    pipeline = Pipeline.from_json(definition, scheme, seal=seal)
    if not makes_fingerprints(pipeline.steps):
        raise ConfigError(
            "the pipeline makes no fingerprints, so nothing would ever fold: add a step such as "
            '{"supershingle": {"fields": ["title", "body"]}}'
        )
    return pipeline


def check_dictionaries(asked: Asked, recipe: Recipe) -> None:
    """Check that the languages of an index are installed as they were when it was made.

    Raises:
        SchemeMismatch: one has another version now; the message has the commands that move the index to it.
    """
    try:
        check_versions(recipe.scheme.languages)
    except SchemeMismatch as error:
        codes = ",".join(ref.code for ref in recipe.scheme.languages)
        change = [asked.hints.command("setup", asked.index, languages=codes), asked.command("backfill")]
        how = chain(change) if is_server(asked.where) else asked.anew()
        remedy = f"Install the version it was made with, or move the index to this one: {how}"
        where = f"index {asked.index!r}"
        raise SchemeMismatch(error.found, error.expected, where, remedy) from error


def stored_hit(store: Store, asked: Asked, given: str, typed: Sequence[str], missing: str = "") -> JSON:
    """Return a document that is there, as a search under the name given shows it.

    An alias may stand for several indices, and hide documents by its filter: only searches heed both.

    Args:
        given: its id, or ``INDEX/ID`` where several of these indices have one.
        typed: the words of the command, for those that name one.
        missing: what is said of one that isn't there, if not that there is no document of this id.

    Raises:
        InputError: there is none, or there are several.
    """
    index = asked.index
    hits = _named(store, index, given) or same_id(store, index, given)
    if not hits:
        raise InputError(
            f"{missing or f'no document {given!r}'} in the index {index!r}, {_ids(store, asked)}"
        )
    if len(hits) > 1:
        raise _several(given, hits, typed)
    return hits[0]


def _ids(store: Store, asked: Asked) -> str:
    """Return in words which ids there are, for whoever has asked for another."""
    body = {
        "query": {"bool": {"must_not": [placeholder_query(store.field)]}},
        "size": _NAMED_IDS,
        "_source": False,
    }
    hits = store.engine.search(asked.index, body)["hits"]["hits"]
    if not hits:
        return "which has no documents"
    search = asked.hints.command("search", "WORDS", index=asked.index, json=True, no_fold=True)
    return (
        f"whose ids are such as {', '.join(repr(hit['_id']) for hit in hits)}; a search shows them: {search}"
    )


def same_id(store: Store, index: str, id_: str) -> list[JSON]:
    """Return the documents of one id that a search shows: one in each index, and under each routing."""
    body = {"query": {"ids": {"values": [id_]}}, "size": _SAME_ID}
    hits: list[JSON] = store.engine.search(index, body)["hits"]["hits"]
    return hits


def _named(store: Store, index: str, given: str) -> list[JSON]:
    """Return the documents of one of the indices searched that are meant by ``INDEX/ID``."""
    name, _, id_ = given.partition("/")
    if not id_ or name not in store.mappings:
        return []
    return [hit for hit in same_id(store, index, id_) if hit["_index"] == name]


def _several(given: str, hits: list[JSON], typed: Sequence[str]) -> InputError:
    names = sorted(f"{hit['_index']}/{hit['_id']}" for hit in hits)
    if len(set(names)) < len(names):
        return InputError(
            f"there are several documents {given!r} in one index, under several routings, which have no "
            "names of their own; give the text of the one that is meant instead"
        )
    commands = "; ".join(instead(typed, given, name) for name in names)
    return InputError(f"there are several documents {given!r}; name one by its index: {commands}")


def unread_texts(engine: "Engine", asked: "Asked", index: str, pipeline: "Pipeline", recipe: "Recipe") -> str:
    """Return what to do where the pipeline finds no text in documents of an index; nothing where it does.

    Args:
        asked: whose commands name the options in force.
    """
    from shinglefold.ingest.field_paths import cut
    from shinglefold.ingest.field_statistics import likely_texts

    body = {"size": _SAMPLE, "query": {"bool": {"must_not": [placeholder_query(recipe.field)]}}}
    hits = engine.search(index, body)["hits"]["hits"]
    sources = [cut(hit["_source"], recipe.field) for hit in hits]
    if not sources or _has_text(pipeline, recipe.fields, sources):
        return ""
    none = "the document" if len(sources) == 1 else f"none of the {len(sources)} documents"
    has = "has no text" if len(sources) == 1 else "has text"
    told = f"{none} of {index} looked at {has} in {', '.join(recipe.fields)}, so that nothing would fold"
    other = tuple(name for name in likely_texts(sources) if name not in recipe.fields)
    if not other:
        return told
    commands = [asked.hints.command("setup", index, field=other), asked.hints.command("backfill", index)]
    return f"{told}; there is text in {', '.join(other)}; to take it from there: {chain(commands)}"


def _has_text(pipeline: "Pipeline", fields: Sequence[str], sources: Sequence["Document"]) -> bool:
    """Tell whether the pipeline finds text in a document, or fails on one, which is told elsewhere."""
    from shinglefold.ingest.processors.texts import gather

    outcomes = pipeline.run([{**source, "_id": str(place)} for place, source in enumerate(sources)])
    return any(one.document is None or gather(one.document, fields, True) for one in outcomes)


def passages_remedy(asked: "Asked") -> str:
    """Return the commands that give an index the elements of passages."""
    setup = asked.hints.command("setup", asked.index, passages=True)
    return chain([setup, asked.hints.command("backfill", asked.index)])


def passages_too(
    asked: "Asked", pipeline: "Pipeline", recipe: "Recipe", *, fresh: bool
) -> "tuple[Pipeline, Recipe]":
    """Return a pipeline that stores the elements of passages, too, and the recipe of an index to come.

    Raises:
        ConfigError: the index is there and stores none.
    """
    there = False
    if not fresh:
        with suppress(IndexMissing):
            there = recipe_of_index(asked) is not None
    if there:
        raise ConfigError(
            f"index {asked.index!r} stores no elements of passages. Let it from now on, and add those of its "
            f"documents: {passages_remedy(asked)}; or build it anew: --recreate"
        )
    definition = with_passages(recipe.pipeline or {}, recipe.field)
    made = checked_pipeline(definition, recipe.scheme, pipeline.tools.seal)
    return made, replace(recipe, pipeline=definition)
