"""Text to searchable tokens, for documents and for queries."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from typing import Any, cast

from shinglefold.engines.embedded.schema.field_types import well_formed
from shinglefold.errors import ConfigError, EngineError, suggest
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Token

#: The default options of a language.
_DEFAULTS = asdict(CanonOptions())


class Analysis:
    """The analyzer of an engine, from a canonicalizer or a callable ``text -> list[Token]``.

    Without either, mappings can be read, but text can't be indexed or searched.
    """

    def __init__(self, canonicalizer: Any) -> None:  # noqa: ANN401 - a Canonicalizer or a callable
        tokens: Any = _refuse if canonicalizer is None else getattr(canonicalizer, "tokens", canonicalizer)
        if not callable(tokens):
            raise ConfigError(f"{canonicalizer!r} is neither a Canonicalizer nor a callable text -> tokens")
        self._tokens = cast(Callable[[str], Sequence[Token]], tokens)
        # Texts are analysed in batches if possible, to share numpy's cost per call.
        self._batch: Callable[[Sequence[str]], list[str]] = getattr(
            canonicalizer, "text_batch", self._one_by_one
        )
        in_each: Callable[[], Sequence[Any]] = getattr(canonicalizer, "in_each_language", list)
        self._in_each = cache(lambda: [one.tokens for one in in_each()])
        # The same query often comes again, for the next window or page.
        self._readings = lru_cache(maxsize=1024)(self._read)
        references = getattr(canonicalizer, "references", None)
        #: Identifies what makes the tokens; stored with an index, empty for a callable.
        self.identity: str = (
            json.dumps([asdict(ref) for ref in references], sort_keys=True) if references else ""
        )

    def tokens(self, text: str) -> Sequence[Token]:
        """Return the tokens of a document's text, with offsets into it."""
        return self._tokens(text)

    def column_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of each text joined by spaces, as the text columns contain them."""
        return [well_formed(text) for text in self._batch(texts)]

    def readings(self, text: str) -> tuple[tuple[str, ...], ...]:
        """Return the tokens of a query, in one list for each analysis that gives different tokens.

        A query is too short to tell Russian from Ukrainian, so it is also analysed in each language. Lists
        without tokens are left out.
        """
        return self._readings(text)

    def _one_by_one(self, texts: Sequence[str]) -> list[str]:
        return [" ".join([token.text for token in self._tokens(text)]) for text in texts]

    def _read(self, text: str) -> tuple[tuple[str, ...], ...]:
        found = [self._tokens(text), *(tokens(text) for tokens in self._in_each())]
        lists = {tuple(well_formed(token.text) for token in tokens): None for tokens in found if tokens}
        return tuple(lists)


def _refuse(_: str) -> Sequence[Token]:
    raise ConfigError("this engine was opened without a canonicalizer: give it one to write or search text")


def check_analysis(index: str, made: str, analysis: Analysis) -> None:
    """Check that an engine analyses texts as the engine that made an index did.

    Args:
        made: the identity stored with the index; empty if it is not known.

    Raises:
        EngineError: it does not, so hardly any word would match.
    """
    if made and analysis.identity and made != analysis.identity:
        raise EngineError(
            f"the index {index} was made with other languages, dictionaries or options than this engine has: "
            f"{_languages(made)}. To change them, index its documents again: "
            f"{suggest('index', 'FILE', index=index, recreate=True)}"
        )


def _languages(identity: str) -> str:
    """Return the languages of an identity with their versions and the options that are not default."""
    described = []
    for one in json.loads(identity):
        options = [
            f"{name} {json.dumps(value)}"
            for name, value in one["options"].items()
            if value != _DEFAULTS.get(name, value)
        ]
        described.append(
            " ".join([one["code"], one["version"], *(f"({', '.join(options)})" for _ in options[:1])])
        )
    return ", ".join(described)
