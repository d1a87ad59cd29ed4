"""The steps of a search for passages, whoever drives them."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from shinglefold.advice import advised, together
from shinglefold.awaited import AsyncEngine
from shinglefold.canon import Canonicalizer
from shinglefold.checks import check_is_text, check_options
from shinglefold.contracts import Engine
from shinglefold.errors import ConfigError, InputError, ShinglefoldError, UnknownLanguage
from shinglefold.quoted import quoted
from shinglefold.recipe import PASSAGES
from shinglefold.rerank.matching.asked import AskedText
from shinglefold.rerank.matching.looking import PassageLooking
from shinglefold.rerank.matching.options import MatchOptions
from shinglefold.rerank.matching.pages import MatchPage, read_matches
from shinglefold.rerank.msearch import run_side_by_side
from shinglefold.rerank.request.arguments import check_means, check_several
from shinglefold.rerank.similar.indices import Indices, Known
from shinglefold.rerank.steps import Steps
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal

Driven = TypeVar("Driven", Engine, AsyncEngine)


class MatchSteps(Generic[Driven]):
    """What is asked of an engine to find passages.

    Args:
        engine: any ``Engine``, or for ``AsyncMatchSearch`` one whose methods are awaited.
        canonicalizer: of the scheme of the index; None makes one. Making one takes longer than a search.
        language: of the texts asked for; None chooses it word by word.
        seal: of the key the index is sealed with.
    """

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        canonicalizer: Canonicalizer | None = None,
        *,
        language: str | None = None,
        seal: Seal | None = None,
    ) -> None:
        check_means(engine, canonicalizer, seal, awaited=self._awaited)
        if language is not None:
            check_is_text("language", language)
        self._engine: Driven = engine
        self._canonicalizers = {} if canonicalizer is None else {canonicalizer.references: canonicalizer}
        self._language = language
        self._indices = Indices(None, None, seal)

    def _page(
        self, index: str, wanted: str, options: MatchOptions | None, place: str | None
    ) -> Steps[MatchPage]:
        by = yield from self._looking(index, options)
        return (yield from read_matches(self._asked(wanted, by), by, place))

    def _batch(
        self, index: str, several: Sequence[str], options: MatchOptions | None
    ) -> Steps[list[MatchPage | ShinglefoldError]]:
        check_several("texts", several, "texts")
        by = yield from self._looking(index, options)
        asked = [self._asked(text, by) for text in several]
        return (yield from run_side_by_side([read_matches(one, by, None) for one in asked]))

    def _asked(self, text: str, by: PassageLooking) -> AskedText:
        if not isinstance(text, str):
            raise InputError(f"expected a text, got {quoted(text)}")
        return AskedText.of(text, by.canonicalizer, self._language)

    def _looking(self, index: str, options: MatchOptions | None) -> Steps[PassageLooking]:
        check_options(options, MatchOptions)
        known = yield from self._indices.known(index)
        _check_stored(known)
        made = self._canonicalizer(known.scheme)
        chosen = options or MatchOptions()
        return PassageLooking(index, known, known.fields_by_index, chosen, self._engine.can, made)

    def _canonicalizer(self, scheme: Scheme) -> Canonicalizer:
        if scheme.languages not in self._canonicalizers:
            self._canonicalizers[scheme.languages] = Canonicalizer.of(scheme)
        made = self._canonicalizers[scheme.languages]
        if self._language is not None and self._language not in made.codes:
            raise UnknownLanguage.unknown("language", self._language, made.codes)
        return made


def _check_stored(known: Known) -> None:
    """Refuse an index none of whose documents could be found.

    Raises:
        ConfigError: it stores no elements of passages.
    """
    for name, mappings in known.mappings.items():
        if not _stores(mappings, known.field):
            commands = together([advised("setup", name, passages=True), advised("backfill", name)])
            raise ConfigError(f"index {name!r} stores no elements of passages: {commands}")


def _stores(mappings: Mapping[str, Any], field: str) -> bool:
    node: Any = mappings
    for name in [*field.split("."), PASSAGES]:
        node = (node.get("properties") or {}).get(name)
        if not isinstance(node, Mapping):
            return False
    return True
