"""Read stored fingerprints from an index: each executor scans its own slices, under a point in time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.errors import ConfigError
from shinglefold.maintenance.scan import Scan, Slice
from shinglefold.model.recipe import FIELD, Recipe
from shinglefold.model.stored_fingerprint import is_placeholder, stored_parts
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.spark.session import Batch, Frame, Session
from shinglefold.offline.spark.signing import PRINT
from shinglefold.options.validation import check_int

_SCHEMA = f"_index string, _id string, _routing string, {FIELD} {PRINT}"
_PARTS = ("scheme", "lang", "shingles", "digest", "supershingles", "signature")


def stored(session: Session, where: str | Connection, index: str, recipe: Recipe, *, parts: int = 1) -> Frame:
    """Return the stored fingerprints of an index, for ``prints``: _index, _id, _routing and _dedup.

    Each part is read under its own point in time, so a second computation may see other documents: store the
    frame. Placeholders of a gate are left out.

    Args:
        where: the engine, see ``open_engine``. A ``Connection`` is sent to the executors with its
            credentials. For an address they read credentials from their environment.
        parts: how many executors read in parallel; more than one needs an engine with slices.

    Raises:
        ConfigError: the fingerprints are sealed, and Spark has no key to check them.
    """
    check_int("parts", parts, 1, 1024)
    if recipe.sealed:
        raise ConfigError(f"the fingerprints of index {index!r} are sealed, and Spark gets no keys")
    slices = session.range(0, parts, 1, parts)
    return slices.mapInArrow(_Read(where, index, parts, recipe.field), _SCHEMA)


@dataclass(frozen=True, slots=True)
class _Read:
    where: str | Connection
    index: str
    parts: int
    path: str

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        if not numbers:
            return
        with closing(open_engine(self.where)) as engine:
            for number in numbers:
                yield from self._part(engine, Slice(number + 1, self.parts))

    def _part(self, engine: Engine, part: Slice) -> Iterator[Batch]:
        scan = Scan(engine, self.index, part=part, fields=[self.path])
        place = scan.start()
        for page in scan.pages(place):
            yield self._batch(page.hits)
            place = page.place
        scan.close(place)

    def _batch(self, hits: Sequence[Mapping[str, Any]]) -> Batch:
        documents = [hit for hit in hits if not is_placeholder(hit["_source"], self.path)]
        prints = [_whole(stored_parts(hit["_source"], self.path)) for hit in documents]
        texts = {name: [hit.get(name) for hit in documents] for name in ("_index", "_id", "_routing")}
        columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
        return pa.RecordBatch.from_pydict({**columns, FIELD: pa.array(prints, print_type(pa))})


def _whole(parts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parts that ``prints`` reads; only an empty digest, which is damaged, if a type is wrong."""
    words = parts.get("supershingles")
    # Engines store a list of one value like the value itself.
    found = {**parts, "supershingles": [words] if isinstance(words, str) else words}
    whole = {name: found.get(name) for name in _PARTS}
    if all(value is None for value in whole.values()):
        return None
    return whole if _has_field_types(whole) else {**dict.fromkeys(_PARTS), "digest": ""}


def _has_field_types(parts: Mapping[str, Any]) -> bool:
    words, shingles = parts["supershingles"], parts["shingles"]
    texts = [parts[name] for name in ("scheme", "lang", "digest", "signature")]
    listed = words is None or (isinstance(words, list) and all(isinstance(word, str) for word in words))
    counted = shingles is None or (type(shingles) is int and abs(shingles) < 2**63)
    return listed and counted and all(text is None or isinstance(text, str) for text in texts)
