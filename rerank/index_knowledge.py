"""What folding knows of the indices that are searched: mappings and recipes, cached.

The mappings behind a name are read once, and again after some seconds or when hits contradict them. A
cached name takes about 2 kB.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType
from typing import Any

from shinglefold.errors import ConfigError, EngineError, IndexMissing, ShinglefoldError, chain, suggest
from shinglefold.model.recipe import (
    FIELD,
    META_KEY,
    TEXTS,
    Recipe,
    has_recipe,
    stored_recipe,
    stores_keywords,
)
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.hits import FingerprintCounts, Hit
from shinglefold.rerank.index_fields import (
    TEXT_TYPES,
    Mappings,
    SchemeOf,
    check_dates,
    check_fields,
    check_recipe,
    check_values,
    definition_of,
    index_names,
    is_nested,
    is_valid,
    keyword_fields,
    keywords_missing,
    mapped_at,
    mappings_of_each,
    named_fields,
    text_fields_of,
    unreadable_dates,
)
from shinglefold.rerank.representatives import BUILT_IN, load_policies
from shinglefold.rerank.request.arguments import key_name, skips_exactly, sort_keys
from shinglefold.rerank.request.fold_options import BY_DATE, FoldOptions
from shinglefold.runtime.recent import RecentlyUsed

_log = logging.getLogger("shinglefold.rerank")
#: Seconds for which new mappings are right if hits show other schemes: searches lag behind them.
_FRESH_SECONDS = 0.2
#: Seconds between two warnings about the same index.
_SECONDS_BETWEEN_WARNINGS = 60.0
#: The most fields, indices and schemes cached for a name.
_MOST_KNOWN = 1000
#: How a field is used (``field``, ``values``, ``date``) and its name; or ``sort`` and the whole key.
Use = tuple[str, str]


class Unfoldable(Exception):
    """A search can be answered, but its hits can't be folded.

    ``error``: what ``on_trouble`` ``raise`` raises.
    """

    def __init__(self, error: ShinglefoldError) -> None:
        super().__init__(str(error))
        self.error = error


class Outdated(Exception):
    """The hits of a search contradict what is cached about its index."""


@dataclass(eq=False, slots=True)
class IndexFacts:
    """What folded searches need of the mappings behind a name.

    ``scheme``, ``dedup``: scheme and field of the fingerprints. ``texts``: the fields from whose texts the
    fingerprints of each index were made. ``mismatch``: why hits of an index are shown alone.
    ``keywordless``, ``groupless``: an index without supershingles or group numbers, empty if there is none.
    ``uses``: the fields that options named, and what for; None if the mappings may not be read.
    ``seen``: what hits may show without a contradiction: indices, other schemes, "" for no fingerprints.
    ``signing``: the parts of the mappings of each index that tell how texts were signed.
    ``settled``: whether the mappings were just read again, so that hits contradict nothing.
    ``inexact``: sort keys of earlier searches by which servers may skip hits.
    ``dates``: fields of ``uses`` that are dates in a format that folding can't read.
    ``keywords``: fields of ``uses`` that are keywords in some index.
    ``pipeline``: the default search pipeline of the index; {} if there is none, or it can't be read.
    """

    scheme: Scheme
    dedup: str
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mismatch: ShinglefoldError | None = None
    keywordless: str = ""
    groupless: str = ""
    uses: set[Use] | None = None
    seen: set[str] = field(default_factory=set)
    signing: Mapping[str, Mappings] = field(default_factory=dict)
    inexact: set[Use] = field(default_factory=set)
    dates: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    read: float = field(default_factory=monotonic)
    settled: bool = False

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields from whose texts the fingerprints of all indices were made."""
        return tuple(dict.fromkeys(name for names in self.texts.values() for name in names)) or TEXTS

    def differs(self, other: "IndexFacts") -> bool:
        """Return whether a search with the other knowledge may have another result."""
        return _decisive(self) != _decisive(other)

    def check(self, hits: Iterable[Hit], counts: FingerprintCounts | None = None) -> None:
        """Raise ``Outdated`` if hits contradict the mappings: they show another index, or another scheme."""
        if self.settled:
            if len(self.seen) < _MOST_KNOWN:
                self.seen |= _indices(hits) | _unmapped_schemes(counts)
            return
        if self.uses is None:
            return
        if not _indices(hits) <= self.seen or not (self._is_fresh or _unmapped_schemes(counts) <= self.seen):
            raise Outdated

    def may_skip_hits(self, body: Mapping[str, Any]) -> bool:
        """Return whether servers may lose hits by the first sort key of a request."""
        if self.uses is None:
            # The types of fields are unknown, as under a point in time of the caller.
            return any(not skips_exactly(key, ()) for key in sort_keys(body)[:1])
        return bool(_sorted_by(body) & self.inexact)

    @property
    def _is_fresh(self) -> bool:
        return monotonic() - self.read < _FRESH_SECONDS


def _indices(hits: Iterable[Hit]) -> set[str]:
    # The mappings of an index in another cluster can't be read.
    return {name for name in {str(hit.get("_index")) for hit in hits} if ":" not in name}


def _unmapped_schemes(counts: FingerprintCounts | None) -> set[str]:
    """Return what hits show that is not in the mappings: other schemes, or "" for no fingerprints at all."""
    if counts is None:
        return set()
    return {*counts.other_schemes, *([""] if counts.hits and counts.unsigned == counts.hits else [])}


def _decisive(facts: IndexFacts) -> tuple[object, ...]:
    recipe = facts.scheme.id, facts.dedup, facts.texts, str(facts.mismatch)
    return *recipe, facts.keywordless, facts.groupless, facts.pipeline


class IndexKnowledge:
    """The facts about each index searched, by the name under which it was searched.

    Args:
        scheme: the scheme of the search, or a function that takes it from the recipe of the index.
        field: the field of the fingerprints; None takes that of the index.
        pipelines: whether indices may have search pipelines.
    """

    def __init__(
        self, scheme: Scheme | SchemeOf, field: str | None, seal: Seal | None, *, pipelines: bool = False
    ) -> None:
        self._given, self._field, self._seal = scheme, field, seal
        self._pipelines = pipelines
        self._facts: RecentlyUsed[str, IndexFacts] = RecentlyUsed()
        self._signing: RecentlyUsed[str, Mappings] = RecentlyUsed(256)
        self._warned: RecentlyUsed[str, tuple[float, str]] = RecentlyUsed()

    def facts(
        self,
        index: str | None,
        options: FoldOptions,
        body: Mapping[str, Any] = MappingProxyType({}),
        *,
        renew: bool = False,
    ) -> Steps[IndexFacts]:
        """Return the knowledge of an index; its mappings are read again after some seconds.

        Args:
            body: the request, whose first sort key is looked up.
            renew: read them in any case.

        Raises:
            Unfoldable: no hit of the index could fold.
            ConfigError: an option names a field that no index has, or whose dates can't be compared.
        """
        known = self._facts.get(str(index))
        if known is None or renew or not self._is_valid(known, options, body):
            before, known = known, (yield from self._renew(index, options, body, known))
            if before is not None and not renew and not known.differs(before):
                known.seen |= before.seen
            self._facts.put(str(index), known)
        _check_keywords_of(known, options)
        _check_one_form(known, options)
        return known

    def scheme_of(self, index: str | None) -> Scheme | None:
        """Return the scheme that an index was last folded by, if it is known."""
        if isinstance(self._given, Scheme):
            return self._given
        known = self._facts.get(str(index))
        return None if known is None else known.scheme

    def warn(self, index: str | None, reason: object) -> None:
        """Log why a page is not folded, once a minute for each index and reason."""
        now, text = monotonic(), str(reason)
        when, before = self._warned.get(str(index)) or (0.0, "")
        if text != before or now - when > _SECONDS_BETWEEN_WARNINGS:
            self._warned.put(str(index), (now, text))
            _log.warning("search of %s is not folded: %s", index, text)

    def _is_valid(self, known: IndexFacts, options: FoldOptions, body: Mapping[str, Any]) -> bool:
        if not is_valid(known.read):
            return False
        return known.uses is None or known.uses.issuperset(_uses(options) | _sorted_by(body))

    def _renew(
        self,
        index: str | None,
        options: FoldOptions,
        body: Mapping[str, Any],
        known: IndexFacts | None,
    ) -> Steps[IndexFacts]:
        names = index_names(index)
        found: dict[str, Mappings] = {}
        hidden = not names
        for name in names:
            try:
                each = yield from mappings_of_each(name)
            except IndexMissing:
                # A pattern may match nothing. The search itself reports a missing index.
                continue
            except EngineError:
                # A search may still be answered; the cached knowledge is better than an error.
                if known is None:
                    raise
                return known
            hidden = hidden or each is None
            found |= each or {}
        facts = self._facts_of(str(index), found)
        if self._pipelines and names:
            facts.pipeline = yield Call("search_pipeline", (",".join(names), None))
        if hidden:
            facts.uses = None
        elif not found:
            # No index: nothing is hidden, and the search itself finds what there is.
            facts.uses = set()
        else:
            uses = _uses(options)
            for use in sorted(uses):
                _check_use(found, str(index), use)
            before = known.uses if known is not None and known.uses else set()
            if len(before) <= _MOST_KNOWN:
                # The types of fields may have changed.
                uses |= {use for use in before if _still_fits(found, str(index), use)}
            facts.uses = uses | _sorted_by(body)
            fields = {name for _, name in facts.uses}
            facts.dates = unreadable_dates(found.values(), fields)
            facts.keywords = keyword_fields(found.values(), fields)
            facts.inexact = set() if _skips_exactly(found, body) else _sorted_by(body)
        return facts

    def _facts_of(self, index: str, found: Mapping[str, Mappings]) -> IndexFacts:
        """Return the facts of an index from the mappings of each index behind its name."""
        for name, mappings in found.items():
            _check_readable(mappings, name, self._field_of(mappings))
        scheme, field, mismatch = self._target(found)
        fitting: dict[str, Mappings] = {}
        for name, mappings in found.items():
            try:
                check_recipe(mappings, name, scheme, field, self._seal)
            except ShinglefoldError as error:
                # A copy has no traceback, which would keep the mappings in memory.
                mismatch = mismatch or copy(error)
                continue
            if mapped_at(mappings, f"{field}.digest") is not None:
                fitting[name] = mappings
        if found and not fitting:
            commands = chain([suggest("setup", index), suggest("backfill", index)])
            lacking = ConfigError(f"index {index!r} has no fingerprints in {field!r}; add them: {commands}")
            raise Unfoldable(mismatch or lacking)
        return IndexFacts(
            scheme,
            field,
            text_fields_of(found),
            mismatch,
            next((name for name, one in fitting.items() if not _has_keywords(one, field)), ""),
            next((name for name, one in found.items() if not _has_groups(one, field)), ""),
            set(),
            set(found),
            {name: self._intern(_signing_mappings(mappings)) for name, mappings in found.items()},
        )

    def _intern(self, mappings: Mappings) -> Mappings:
        """Return equal mappings as one object: most indices of a site have the same recipe."""
        name = json.dumps(mappings, sort_keys=True)
        if (known := self._signing.get(name)) is None:
            self._signing.put(name, known := mappings)
        return known

    def _field_of(self, mappings: Mappings) -> str:
        return self._field or str((stored_recipe(mappings) or {}).get("field") or FIELD)

    def _target(self, found: Mapping[str, Mappings]) -> tuple[Scheme, str, ShinglefoldError | None]:
        """Return the scheme and the field to fold by: those of the search, else those of most indices.

        Of two recipes with as many indices, that of the first name wins, also in the plugin.
        """
        if isinstance(self._given, Scheme):
            return self._given, self._field or FIELD, None
        recipes: list[Recipe] = []
        problem: ShinglefoldError | None = None
        for name, mappings in sorted(found.items()):
            try:
                recipes += [Recipe.of(mappings, name)] if has_recipe(mappings) else []
            except ShinglefoldError as error:
                problem = copy(error)
        if not recipes:
            names = ", ".join(found) or "the index"
            raise Unfoldable(problem or ConfigError(f"the recipe of {names} can't be read"))
        counted = Counter((recipe.scheme.id, recipe.field) for recipe in recipes)
        chosen = counted.most_common(1)[0][0]
        recipe = next(one for one in recipes if (one.scheme.id, one.field) == chosen)
        return self._given(recipe), self._field or recipe.field, problem


def _sorted_by(body: Mapping[str, Any]) -> set[Use]:
    """Return the first sort key of a request, with its options."""
    return {("sort", repr(key)) for key in sort_keys(body)[:1]}


def _skips_exactly(found: Mapping[str, Mappings], body: Mapping[str, Any]) -> bool:
    """Return whether servers skip by the first sort key of a request without losing hits."""
    keys = sort_keys(body)
    if not keys:
        return True
    name, definitions = str(key_name(keys[0])), list[Mappings | None]()
    for mappings in found.values():
        one = None if is_nested(mappings, name) else definition_of(mappings, name)
        definitions.append(one and one[1])
    return skips_exactly(keys[0], definitions)


def _signing_mappings(mappings: Mappings) -> Mappings:
    """Return the recipe of mappings, and the fields of its texts."""
    recipe = stored_recipe(mappings) or {}
    tops = {str(name).partition(".")[0] for name in recipe.get("fields", ())}
    properties = mappings.get("properties") or {}
    kept = {name: properties[name] for name in tops if name in properties}
    return {"_meta": {META_KEY: recipe}, "properties": kept}


def _uses(options: FoldOptions) -> set[Use]:
    """Return the uses of the fields that options name; a field may have several."""
    # A plugin may read fields by a pattern.
    policies = (
        name
        for one in options.representative
        for name in load_policies([one])[0].fields
        if one.name in BUILT_IN or "*" not in name
    )
    each = (
        ("field", named_fields(options)),
        ("date", options.date_fields),
        ("values", [*(scope.field for scope in options.scope), *policies]),
    )
    return {(use, name) for use, names in each for name in names}


def _check_use(found: Mapping[str, Mappings], index: str, use: Use) -> None:
    """Raise ``ConfigError`` if a field can't be used in this way, by the mappings of each index."""
    kind, name = use
    if kind == "field":
        check_fields(found.values(), index, [name], "ext.dedup")
    elif kind == "values":
        check_values(found, [name])
    else:
        check_dates(found, [name])


def _still_fits(found: Mapping[str, Mappings], index: str, use: Use) -> bool:
    """Return whether a field that an earlier request named can be used in this way; sort keys can't."""
    try:
        if use[0] != "sort":
            _check_use(found, index, use)
    except ConfigError:
        return False
    return use[0] != "sort"


def _check_one_form(facts: IndexFacts, options: FoldOptions) -> None:
    """Refuse a date with a format that is read by its time and as written: a search returns one of both."""
    dates = facts.dates & options.date_fields
    if not dates:
        return
    others = [one for one in options.representative if one.name not in BY_DATE]
    written = {name for policy in load_policies(others) for name in policy.fields}
    written |= {scope.field for scope in options.scope if scope.within is None}
    if twice := sorted(dates & written):
        raise ConfigError(
            f"{twice[0]!r} is a date with a format: a search reads it either by its time (newest, oldest, "
            "within) or as it is written (prefer, scope). Leave one out, or map a multi-field of the same "
            "format for it"
        )


def _check_readable(mappings: Mappings, index: str, field: str) -> None:
    """Refuse an index whose fingerprints a window can't read: hits of others would be lost with it."""
    for part in ("digest", "signature"):
        mapped = mapped_at(mappings, f"{field}.{part}") or {}
        how = f"as {mapped['type']}" if mapped.get("type") in TEXT_TYPES else ""
        if mapped.get("doc_values") is False:
            how = "without doc values"
        if how:
            raise Unfoldable(
                ConfigError(
                    f"index {index!r} maps {field}.{part} {how}, so that its fingerprints can't be read: "
                    f"reindex it into an index that was set up first ({suggest('setup', 'NEW_INDEX')})"
                )
            )


def _check_keywords_of(facts: IndexFacts, options: FoldOptions) -> None:
    if facts.keywordless and Matcher.of(facts.scheme, options).min_shared:
        error = keywords_missing(facts.keywordless)
        # The caller chose the number, or the index changed under a scheme that needs one.
        raise error if options.min_shared else Unfoldable(error)


def _has_keywords(mappings: Mappings, field: str) -> bool:
    return stores_keywords((stored_recipe(mappings) or {}).get("pipeline"), field)


def _has_groups(mappings: Mappings, field: str) -> bool:
    return (mapped_at(mappings, f"{field}.group") or {}).get("type") == "long"
