"""A document as JSON, as it is kept: what it says, and apart from that the objects at its top level.

What it says is stored by tantivy, which holds it three times while a document is added. A document with a
long text is compressed instead, and stands beside its head, outside of tantivy.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tantivy

from shinglefold.engines.embedded.heads import Heads, read_head
from shinglefold.engines.embedded.schema import SOURCE
from shinglefold.local_engines import Halves
from shinglefold.long_texts import LEVEL, LongText, Text, give_back, is_long, slices
from shinglefold.plain_json import plain_json

#: The types of most values of a document.
_PLAIN = frozenset({str, int, float, bool, type(None)})


class Source(NamedTuple):
    """A document as JSON: without the objects at its top level (null in their places), and its head.

    ``apart``: ``main`` is compressed, and kept outside of tantivy. ``parts``: of a document whose long texts
    came compressed, what ``main`` is made of when it is wanted: beside them it would weigh as much again.
    """

    main: bytes
    head: bytes
    apart: bool = False
    parts: tuple[bytes | Text, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        own = (sum(map(len, part.packed)) if isinstance(part, LongText) else len(part) for part in self.parts)
        return len(self.main) + len(self.head) + sum(own)

    def packed(self) -> bytes:
        """Return what is kept outside of tantivy, as it is kept."""
        return _compressed(_flat(self.parts)) if self.parts else self.main

    def load(self) -> dict[str, Any]:
        """Return the document as it was given."""
        return loaded(self.json()) | read_head(self.head).parts

    def json(self) -> bytes:
        """Return what it says as JSON."""
        if self.parts:
            return b"".join(_flat(self.parts))
        return zlib.decompress(self.main) if self.apart else self.main

    def add_to(self, document: tantivy.Document) -> None:
        """Have tantivy store what it says, unless that is kept apart."""
        if self.apart:
            # What was freed on the way is what tantivy wants next.
            give_back()
        else:
            document.add_bytes(SOURCE, self.main)


def make_source(
    id: str,  # noqa: A002
    source: Mapping[str, Any],
    made: Halves | None = None,
) -> Source:
    """Return a document as JSON.

    Args:
        made: what ``halves`` returns of it.

    Raises:
        ValueError: it is no JSON.
    """
    if made is not None:
        return Source(made[0], _head(id, made[1]))
    said, parts = _halves(source)
    head = _head(id, _json(parts))
    long = [value for value in said.values() if is_long(value)]
    if not long:
        return Source(_json(said), head)
    cut = _cut(said)
    if all(isinstance(value, LongText) for value in long):
        return Source(b"", head, apart=True, parts=cut)
    return Source(_compressed(_flat(cut)), head, apart=True)


def halves(source: Mapping[str, Any]) -> Halves | None:
    """Return what of a source's JSON can be made beforehand; None where a text is long, or it is no JSON."""
    try:
        said, parts = _halves(source)
        return None if any(map(is_long, said.values())) else (_json(said), _json(parts))
    except ValueError:
        # Whoever writes it tells why.
        return None


def _halves(source: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a source with null for each object at its top level, and these objects.

    Raises:
        ValueError: it is no JSON.
    """
    # Whatever a path with a dot may lead to.
    try:
        parts = {
            name: value
            for name, value in source.items()
            if "." in str(name) or (type(value) not in _PLAIN and _has_object(value))
        }
    except RecursionError as error:
        raise ValueError("the source is no JSON: lists nested too deeply") from error
    return {**source, **dict.fromkeys(parts)}, parts


def _head(id: str, parts: bytes) -> bytes:  # noqa: A002
    return b"[" + _json(id) + b"," + parts + b"]"


def loaded(main: bytes) -> dict[str, Any]:
    """Return what a document says, from JSON."""
    said: dict[str, Any] = json.loads(main.decode("utf-8", "surrogatepass"))
    return said


def stored_main(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> bytes:
    """Return the stored source of a document, as JSON, without the objects at its top level."""
    return _main(searcher, heads, address).json()


def stored_source(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> Source:
    """Return the source of a stored document."""
    (source,) = stored_sources(searcher, heads, [address])
    return source


def stored_sources(
    searcher: tantivy.Searcher, heads: Heads, addresses: Sequence[tantivy.DocAddress]
) -> list[Source]:
    """Return the sources of stored documents. Cost: some 20 µs each."""
    found = heads.load(searcher, addresses)
    return [
        _main(searcher, heads, address)._replace(head=head)
        for address, head in zip(addresses, found, strict=True)
    ]


def _main(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> Source:
    """Return a stored source but for its head."""
    main = searcher.doc(address).get_first(SOURCE)
    if main is None and (beside := heads.beside(searcher, address)) is not None:
        return Source(beside, b"", apart=True)
    return Source(bytes(main or b"{}"), b"")


def _has_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(_has_object, value)))


def _json(value: object) -> bytes:
    if (made := plain_json(value)) is not None:
        return made
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the source is no JSON: {error}") from error
    return text.encode("utf-8", "surrogatepass")


def _compressed(pieces: Iterator[bytes]) -> bytes:
    packer = zlib.compressobj(LEVEL)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _cut(said: Mapping[str, Any]) -> tuple[bytes | Text, ...]:
    """Return the JSON of an object cut where it has long texts, and these as they are."""
    found: list[bytes | Text] = []
    before = b"{"
    for name, value in said.items():
        key = before + _json(name) + b":"
        found += [key + b'"', value, b'"'] if is_long(value) else [key + _json(value)]
        before = b","
    return (*found, b"}")


def _flat(parts: tuple[bytes | Text, ...]) -> Iterator[bytes]:
    """Yield what was cut as JSON; no second copy is made of a long text."""
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            # Each character is written by itself, so that a text may be cut anywhere.
            for piece in part.pieces() if isinstance(part, LongText) else slices(part):
                yield _json(piece)[1:-1]
