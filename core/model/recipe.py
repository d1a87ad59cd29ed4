"""The recipe of an index: how its fingerprints were made, stored in the mapping's ``_meta``."""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shinglefold.errors import ConfigError, RecipeMismatch, SchemeMismatch, chain, shorten, suggest
from shinglefold.model.scheme import Scheme
from shinglefold.options.validation import check_str, expected
from shinglefold.version import __version__

#: What a recipe notes about the gate for the writes of folded clients.
GateNote = Literal["refuse", "none"]
#: The key of the recipe in a mapping's ``_meta``.
META_KEY = "shinglefold"
#: The key that lists the indices of an alias or pattern if their recipes differ.
DIFFERING = "shinglefold_differing"
#: The default field of fingerprints. Queries that name no field leave out names that begin with "_".
FIELD = "_dedup"
#: The field of stored recipes and pipelines that name none: earlier versions omitted their default.
_EARLIER_FIELD = "dedup"
#: The fields that engines have in every index.
_OF_ENGINES = frozenset(
    (
        "_id",
        "_index",
        "_type",
        "_source",
        "_routing",
        "_field_names",
        "_meta",
        "_seq_no",
        "_primary_term",
        "_version",
        "_ignored",
        "_ignored_source",
        "_size",
        "_nested_path",
        "_parent",
        "_doc_count",
        "_feature",
        "_tier",
        "_tsid",
        "_ts_routing_hash",
        "_data_stream_timestamp",
        "_inference_fields",
        "_recovery_source",
        "_score",
        "_doc",
        "_shard_doc",
        "_none_",
        "_all",
        "_timestamp",
        "_ttl",
    )
)
#: The default text fields.
TEXTS = ("title", "body")
#: The default field of a document's declared language; it may be missing.
LANGUAGE = "lang"
#: The part of the fingerprint field by which matching passages are found.
PASSAGES = "passages"
#: The pipeline of a recipe whose documents come with fingerprints.
NO_STEPS: Mapping[str, Any] = {"processors": []}
#: Parts by which the field of fingerprints is recognized.
_PARTS = frozenset({"digest", "signature", "shingles"})
#: Keys of a pipeline that do not affect documents.
_REMARKS = ("description", "version", "_meta")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Recipe:
    """Scheme, pipeline and field of an index.

    Attributes:
        pipeline: its definition; ``NO_STEPS`` if it makes no fingerprints.
        field: the field of fingerprints.
        fields: the text fields that fingerprints are made of.
        sealed: the id of the key that seals fingerprints; empty if they are not sealed.
        product: the version of shinglefold that stored the recipe.
        groups: whether documents get group numbers when they are indexed.
        grouping: the rules for groups if they differ from the scheme's (see ``shinglefold.grouping.rules``).
        profile: the kind of content, a name of ``PROFILES``, whose defaults searches take; empty for none.
        fold: whether folded clients fold searches that do not ask for it; None if nothing is noted.
        gate: what folded clients do with near-duplicates, ``"refuse"`` or ``"none"``; None as for ``fold``.
    """

    scheme: Scheme
    pipeline: Mapping[str, Any]
    field: str = FIELD
    fields: tuple[str, ...] = ()
    sealed: str = ""
    product: str = dataclasses.field(default=__version__, compare=False)
    groups: bool = False
    grouping: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    profile: str = ""
    fold: bool | None = None
    gate: str | None = None

    def __post_init__(self) -> None:
        if self.groups and not self.keywords:
            raise ConfigError(
                "groups are found by supershingles, and the pipeline leaves them out: number no groups, or "
                'store supershingles (leave out "keywords": false, or give setup --keywords)'
            )

    @property
    def keywords(self) -> bool:
        """Whether the pipeline stores supershingles, which searches for copies need."""
        return stores_keywords(self.pipeline, self.field)

    @property
    def never_differ(self) -> tuple[str, ...]:
        """What copies must have in common, by the names of the pipeline."""
        return never_differ(self.pipeline, self.field)

    @property
    def passages(self) -> bool:
        """Whether the pipeline stores the elements by which matching passages are found."""
        return stores_passages(self.pipeline, self.field)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as JSON, for a mapping's ``_meta.shinglefold``."""
        stored: dict[str, Any] = {
            **self.scheme.to_json(),
            "field": self.field,
            "product": self.product,
            "pipeline": self.pipeline,
        }
        if self.fields:
            stored["fields"] = list(self.fields)
        if self.sealed:
            stored["sealed"] = self.sealed
        if self.groups:
            stored["groups"] = True
        if self.grouping:
            stored["grouping"] = dict(self.grouping)
        if self.profile:
            stored["profile"] = self.profile
        # Each index keeps the options that a recipe leaves out.
        noted = {"fold": self.fold, "gate": self.gate}
        return stored | {name: value for name, value in noted.items() if value is not None}

    def with_notes_of(self, other: "Recipe") -> "Recipe":
        """Return the recipe with the settings of another one that do not concern fingerprints."""
        return dataclasses.replace(
            self,
            groups=other.groups,
            grouping=other.grouping,
            profile=other.profile,
            fold=other.fold,
            gate=other.gate,
        )

    @classmethod
    def of(cls, mappings: Mapping[str, Any], index: str) -> "Recipe":
        """Return the recipe in the mappings of an index.

        Raises:
            ConfigError: there is none, so the index is not set up for fingerprints.
            SchemeMismatch: another version of shinglefold made the scheme.
        """
        stored = stored_recipe(mappings) or {}
        if not has_recipe(mappings):
            raise ConfigError(missing_recipe(mappings, index))
        grouping = stored.get("grouping")
        return cls(
            Scheme.from_json(stored),
            stored["pipeline"],
            str(stored["field"]),
            tuple(map(str, stored.get("fields") or ())),
            str(stored.get("sealed") or ""),
            str(stored.get("product", "")),
            stored.get("groups") is True,
            grouping if isinstance(grouping, Mapping) else {},
            str(stored.get("profile") or ""),
            fold if isinstance(fold := stored.get("fold"), bool) else None,
            None if (gate := stored.get("gate")) is None else str(gate),
        )

    def check(self, wanted: "Recipe", index: str, remedy: str) -> None:
        """Check that documents made by another recipe may go into an index with this one.

        Args:
            remedy: what to do if they may not, for the message.

        Raises:
            SchemeMismatch: the schemes differ.
            RecipeMismatch: the fields, the seals or the pipelines differ.
        """
        where = f"index {index!r}"
        if self.scheme.id != wanted.scheme.id:
            raise SchemeMismatch(_scheme_name(self.scheme), _scheme_name(wanted.scheme), where, remedy)
        if self.field != wanted.field:
            raise RecipeMismatch("fingerprints in the field", self.field, wanted.field, where, remedy)
        if self.sealed != wanted.sealed:
            ours, theirs = (f"of key {one}" if one else "of no key" for one in (self.sealed, wanted.sealed))
            raise RecipeMismatch("the seal", ours, theirs, where, remedy)
        if wanted.pipeline not in (NO_STEPS, self.pipeline):
            ours, theirs = first_difference(self.pipeline, wanted.pipeline)
            raise RecipeMismatch("the pipeline", ours, theirs, where, remedy)


def missing_recipe(
    mappings: Mapping[str, Any],
    index: str,
    command: Callable[..., str] = suggest,
    *,
    field: str | None = None,
) -> str:
    """Return the message about an index without a recipe, with the commands that give it one.

    Args:
        command: returns a command by its name, its arguments and options.
        field: the field of fingerprints, if not the usual one.
    """
    if differing := (mappings.get("_meta") or {}).get(DIFFERING):
        return (
            f"{index!r} stands for indices of different recipes ({shorten(', '.join(differing))}): "
            "name one, or make them alike by setup and backfill"
        )
    setup = command("setup", index, dedup_field=field)
    if fingerprint_field(mappings):
        return (
            f"index {index!r} has fields of fingerprints and no recipe: it was removed, or _meta of its "
            f"mappings was replaced. To restore the recipe from its documents: {setup}"
        )
    lacking = "name a scheme but no pipeline" if stored_recipe(mappings) else "have no recipe"
    return (
        f"index {index!r} was not made for fingerprints: its mappings {lacking}; set it up first: "
        f"{chain([setup, command('backfill', index)])}"
    )


def fingerprint_field(mappings: Mapping[str, Any]) -> str:
    """Return the path of the field of fingerprints by its parts, "" if there is none."""
    return next(_fingerprint_fields(mappings, ""), "")


def _fingerprint_fields(node: Mapping[str, Any], path: str) -> Iterator[str]:
    properties = node.get("properties") or {}
    if properties.keys() >= _PARTS:
        yield path.rstrip(".")
    for name, below in properties.items():
        yield from _fingerprint_fields(below, f"{path}{name}.")


def stored_recipe(mappings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the stored JSON of a recipe, with or without a pipeline; None if there is no recipe.

    It names the field of fingerprints, also where an earlier version left it out.
    """
    if not isinstance(mappings, Mapping):
        raise expected("mappings", "those of an index, engine.mappings(index)", mappings)
    stored = (mappings.get("_meta") or {}).get(META_KEY)
    if not isinstance(stored, Mapping) or "id" not in stored:
        return None
    named = {**stored, "field": stored.get("field") or _EARLIER_FIELD}
    if isinstance(pipeline := stored.get("pipeline"), Mapping):
        named["pipeline"] = _with_target(pipeline, _EARLIER_FIELD)
    return named


def has_recipe(mappings: Mapping[str, Any]) -> bool:
    """Return whether mappings have a complete recipe, with scheme and pipeline."""
    return isinstance((stored_recipe(mappings) or {}).get("pipeline"), Mapping)


def check_field(name: str, field: object, texts: Iterable[str] = ()) -> str:
    """Return the field of fingerprints; raise if its name is invalid, or if it would overwrite a text.

    Args:
        name: the option, for the message.
        texts: the text fields that fingerprints are made of.
    """
    path = check_str(name, field)
    steps = path.split(".")
    if not all(step.strip() for step in steps):
        raise expected(name, "the name of a field, with points between its parts", field)
    if steps[0] in _OF_ENGINES:
        raise ConfigError(f"{name}: engines keep {steps[0]!r} for themselves; name another field")
    for text in texts:
        if text == path or text.startswith(f"{path}.") or path.startswith(f"{text}."):
            raise ConfigError(
                f"{name}: {path!r} holds a text that fingerprints are made of ({text!r}), which would be "
                f"lost: name a field of their own, such as {FIELD!r}"
            )
    return path


def signed_fields(mappings: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the text fields of the recipes in mappings, or the default ones."""
    recipes = [stored_recipe(one) or {} for one in mappings]
    named = [str(field) for recipe in recipes for field in recipe.get("fields", ())]
    return tuple(dict.fromkeys(named)) or TEXTS


def comparable(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pipeline without descriptions and with the default field, to store it and to compare it."""
    kept = {name: value for name, value in definition.items() if name not in _REMARKS}
    kept = _with_target(kept, FIELD)
    return {name: _steps(value) if name in _LISTS else value for name, value in kept.items()}


_LISTS = ("processors", "on_failure")


def _steps(steps: object) -> object:
    if not isinstance(steps, list):
        return steps
    return [
        {name: _options(options) for name, options in step.items()} if isinstance(step, Mapping) else step
        for step in steps
    ]


def _options(options: object) -> object:
    if not isinstance(options, Mapping):
        return options
    return {
        name: _steps(value) if name == "on_failure" else value
        for name, value in options.items()
        if name != "description"
    }


def _with_target(definition: Any, field: str) -> Any:  # noqa: ANN401 - JSON
    """Return a pipeline whose steps name the field of fingerprints; ``field`` where they left it out."""
    if isinstance(definition, list):
        return [_with_target(one, field) for one in definition]
    if not isinstance(definition, Mapping):
        return definition
    named = {name: _with_target(one, field) for name, one in definition.items()}
    if isinstance(made := named.get("supershingle"), dict):
        made.setdefault("target_field", field)
    return named


def retarget(definition: Any, old: str, new: str) -> Any:  # noqa: ANN401 - JSON
    """Return a pipeline that writes fingerprints to another field and reads them from there."""
    if old == new:
        return definition
    if isinstance(definition, list):
        return [retarget(one, old, new) for one in definition]
    if not isinstance(definition, Mapping):
        return definition
    changed = {name: retarget(one, old, new) for name, one in definition.items()}
    made = changed.get("supershingle")
    if isinstance(made, dict) and made.get("target_field", FIELD) == old:
        made["target_field"] = new
    source = changed.get("copy_from")
    if isinstance(source, str) and source.startswith(f"{old}."):
        changed["copy_from"] = new + source[len(old) :]
    return changed


def stores_passages(definition: object, field: str) -> bool:
    """Return whether a pipeline stores the elements of passages with the fingerprints in a field."""
    return any(made.get(PASSAGES) is True for made in _fingerprint_options(definition, field))


def with_passages(definition: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return a pipeline that stores the elements of passages with the fingerprints in a field."""
    changed: dict[str, Any] = copy.deepcopy(dict(definition))
    for made in _fingerprint_options(changed, field):
        made[PASSAGES] = True
    return changed


def never_differ(definition: object, field: str) -> tuple[str, ...]:
    """Return what must be equal in copies, by the names of the steps that write fingerprints to a field."""
    named = [made.get("never_differ") or () for made in _fingerprint_options(definition, field)]
    return tuple(dict.fromkeys(name for one in named for name in ([one] if isinstance(one, str) else one)))


def with_never_differ(definition: Mapping[str, Any], field: str, names: Iterable[str]) -> dict[str, Any]:
    """Return a pipeline whose fingerprints in a field hold a hash of what must be equal in copies."""
    changed: dict[str, Any] = copy.deepcopy(dict(definition))
    for made in _fingerprint_options(changed, field):
        made.pop("never_differ", None)
        if names := list(names):
            made["never_differ"] = names
    return changed


def stores_keywords(definition: object, field: str) -> bool:
    """Return whether a pipeline stores the supershingles of the fingerprints in a field."""
    return all(made.get("keywords") is not False for made in _fingerprint_options(definition, field))


def with_keywords(definition: Mapping[str, Any], field: str, stored: bool) -> dict[str, Any]:
    """Return a pipeline that stores or omits the supershingles of the fingerprints in a field."""
    changed: dict[str, Any] = copy.deepcopy(dict(definition))
    for made in _fingerprint_options(changed, field):
        made.pop("keywords", None)
        if not stored:
            made["keywords"] = False
    return changed


def language_options(definition: object, field: str) -> tuple[str, str]:
    """Return the field of the language that documents declare, and the language of all; "" for none."""
    made = next(_fingerprint_options(definition, field), {})
    return str(made.get("language_field") or ""), str(made.get("language") or "")


def _fingerprint_options(value: object, field: str) -> Iterator[dict[str, Any]]:
    """Yield the options of every step that writes fingerprints to a field."""
    if isinstance(value, list):
        for one in value:
            yield from _fingerprint_options(one, field)
    elif isinstance(value, Mapping):
        made = value.get("supershingle")
        if isinstance(made, dict) and made.get("target_field", FIELD) == field:
            yield made
        for one in value.values():
            yield from _fingerprint_options(one, field)


def first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str]:
    """Return the first difference of two pipelines, as text for each."""
    return next(_differences(one, other, ""))


def _differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys([*one, *other]):
            yield from _differences(one.get(name), other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}[{number}]")
    elif one != other:
        yield f"{path} {_quote(one)}", f"{path} {_quote(other)}"


def _quote(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _scheme_name(scheme: Scheme) -> str:
    return f"{scheme.id} ({scheme.name})"
