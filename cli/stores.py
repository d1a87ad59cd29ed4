"""Opening an engine for a command: with the scheme the index was made with, and words to search by."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.contracts import Engine
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError
from shinglefold.ingest import check_index
from shinglefold.scheme import CanonOptions, Scheme
from shinglefold.settings import Settings


class Store(NamedTuple):
    """An open engine, the scheme of the index, and the field its fingerprints are in."""

    engine: Engine
    scheme: Scheme
    field: str


def search_canonicalizer(scheme: Scheme) -> Canonicalizer:
    """Return what makes the words an embedded index is searched by: lemmas as in the scheme, none dropped.

    Function words stay, so that a phrase with them is found as it was written.
    """
    whole = [
        replace(ref, options=CanonOptions(mode=ref.options.mode, drop_function_words=False))
        for ref in scheme.languages
    ]
    return Canonicalizer(whole)


@contextmanager
def opened_store(settings: Settings, index: str, folder: str | None) -> Iterator[Store]:
    """Open the engine that has an index, under the scheme stored with it.

    Raises:
        IndexMissing: there is no such index.
        ConfigError: the index was not made for fingerprints, or has them in another field.
        SchemeMismatch: a language's dictionary is another than the index was made with.
    """
    where = folder or settings.data_dir
    scheme = stored_scheme(where, index, settings.field)
    with closing(open_engine(where, search_canonicalizer(scheme))) as engine:
        yield Store(engine, scheme, settings.field)


def stored_scheme(where: str, index: str, field: str) -> Scheme:
    """Return the scheme an index was made with.

    Raises:
        ConfigError: the index was not made for fingerprints, or has them in another field.
    """
    # No text is analysed for this, and the languages are known only afterwards.
    with closing(open_engine(where, _no_tokens)) as engine:
        found = engine.mappings(index)
    scheme = scheme_of(found, index)
    check_index(found, index, scheme, field)
    return scheme


def scheme_of(mappings: Mapping[str, Any], index: str) -> Scheme:
    """Return the scheme in the mappings of an index.

    Raises:
        ConfigError: there is none.
    """
    stored = (mappings.get("_meta") or {}).get("shinglefold")
    if not isinstance(stored, Mapping):
        raise ConfigError(
            f"index {index!r} was not made for fingerprints; index its documents with: shinglefold index"
        )
    return Scheme.from_json(stored)


def _no_tokens(_text: str) -> list[Any]:
    return []
