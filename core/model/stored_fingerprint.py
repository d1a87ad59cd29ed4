"""Stored fingerprints as documents and hits have them: in any form of the field, one by one or as columns."""

from binascii import a2b_base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.values import LONGEST_DIGEST, Fingerprint, pad_base64

#: Shingles no text has more of; what floats hold exactly.
_MOST = 2**50
#: What stands for the parts that a hit does not have.
_NO_DIGEST, _NO_SIGNATURE = ("..0.",), ("",)
_Row = Mapping[str, Any]


def stored_parts(source: object, path: str) -> dict[str, Any]:
    """Return the parts of the fingerprint in a source, {} where there is none.

    To an engine ``{"dedup": {"digest": …}}``, ``{"dedup.digest": …}`` and a list of objects are the same
    field. A part that stands in several places has all their values, as a list, and so is none.

    Args:
        path: of the field; may be dotted.
    """
    if (whole := _whole(source, path)) is not None:
        return {name: value for name, value in whole.items() if value is not None}
    found: dict[str, list[Any]] = {}
    for piece in _pieces(source, path):
        for name, value in piece.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else _all(values) for name, values in found.items()}


def _whole(source: object, path: str) -> Mapping[str, Any] | None:
    """Return the field where it stands as it was written, whole and in one place; None anywhere else."""
    if type(source) is not dict or type(found := source.get(path)) is not dict or "." in path:
        return None
    inside = f"{path}."
    return None if any(str(key).startswith(inside) for key in source) else found


def without_fingerprint(document: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    """Return a document without any form of the field; the same object where there is none."""
    if isinstance(document, list):
        items = [without_fingerprint(item, path) for item in document]
        return document if all(map(_same, items, document)) else items
    if not isinstance(document, Mapping) or _all_beside(document, path):
        return document
    kept: dict[Any, Any] = {}
    changed = False
    for key, value in document.items():
        rest = _below(key, path)
        if rest == "":
            changed = True
            continue
        kept[key] = value if rest is None else without_fingerprint(value, rest)
        changed = changed or kept[key] is not value
    return kept if changed else document


def _all_beside(document: Mapping[Any, Any], path: str) -> bool:
    """Tell whether no key begins as the path does, so that none is the field, in it, or on the way to it."""
    try:
        return f"\n{path.partition('.')[0]}" not in "\n".join(("", *document))
    except TypeError:
        # Some key is no text.
        return False


def _below(key: object, path: str) -> str | None:
    """Return what of the path is below a key: nothing where the key is the field or in it, None beside it."""
    if not isinstance(key, str):
        return None
    if key == path or key.startswith(f"{path}."):
        return ""
    return path[len(key) + 1 :] if path.startswith(f"{key}.") else None


def _pieces(node: object, path: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, list):
        for item in node:
            yield from _pieces(item, path)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            rest = _below(key, path)
            if rest:
                yield from _pieces(value, rest)
            elif rest == "":
                yield from _objects(value) if key == path else ({key[len(path) + 1 :]: value},)


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _all(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _single(rows: Sequence[_Row], name: str, otherwise: Sequence[Any]) -> list[Any]:
    """Return the value that each row has under a name; what stands for it where a row has none.

    Raises:
        ValueError: one has several, or an empty list; so do other errors.
    """
    try:
        return [text for (text,) in map(itemgetter(name), rows)]
    except LookupError:
        return [text for row in rows for (text,) in (row.get(name, otherwise),)]


def _same(one: object, other: object) -> bool:
    return one is other


class Parts(NamedTuple):
    """Of each row its signature, shingles (−1 without a signature), language and digest.

    There is no language where there is no fingerprint. Digests of different schemes are never equal.
    Signatures stand one after the other; zeros stand for one that is not there.
    """

    signatures: bytes
    shingles: Sequence[int]
    languages: Sequence[str]
    digests: Sequence[Any]


@dataclass(slots=True)
class DecodeProblems:
    """Rows that can't be compared: without a signature, damaged, or of another scheme, by its name."""

    unsigned: int = 0
    unreadable: int = 0
    other_schemes: Counter[str] = field(default_factory=Counter)


class Decoder:
    """Reads rows of stored fingerprints of one scheme, all in one go where that can be.

    A row has the names of the fields and of each the list of its values, as ``docvalue_fields`` return them.

    Args:
        seal: of the key that the fingerprints were sealed with; one without its seal is then damaged, and
            without a key so is one with any seal, which nobody can check.
    """

    def __init__(self, scheme: Scheme, path: str, seal: Seal | None = None) -> None:
        self._seal = seal
        self.size = -(-scheme.sketch.values * scheme.sketch.bits // 8)
        self._scheme = scheme.id
        self._prefix = f"{path}."
        self._digest, self._signature, self._keywords = (
            f"{path}.{part}" for part in ("digest", "signature", "supershingles")
        )
        #: Characters of a signature that are looked at; more of them than it may have make it too long.
        self._characters = 4 * self.size // 3 + 8
        #: Characters of all signatures, where these can be read as one text: none has any padding.
        self._exactly = self.size // 3 * 4 if self.size % 3 == 0 else 0
        self._groups = scheme.sketch.groups

    def keywords(self, rows: Sequence[_Row]) -> list[Any]:
        """Return the supershingles of each row as they stand there."""
        return [row.get(self._keywords, ()) for row in rows]

    def decode(self, rows: Sequence[_Row], keywords: Sequence[Any], troubles: DecodeProblems) -> Parts:
        """Return the columns, and add to the troubles; hardly any row is out of the ordinary.

        Args:
            keywords: those of the rows.
        """
        try:
            if any(keywords) and not all(map(self._readable, keywords)):
                raise ValueError
            signatures = self._signatures(rows)
            heads = self._heads(rows, signatures)
        except (LookupError, TypeError, ValueError, AttributeError):
            signatures, heads = [b""] * len(rows), ([""] * len(rows),) * 4
        schemes, *others = heads
        if set(schemes) <= {self._scheme}:
            if isinstance(signatures, bytes):
                return Parts(signatures, *others)
            if set(map(len, signatures)) <= {self.size}:
                return Parts(b"".join(signatures), *others)
        return self._one_by_one(rows, schemes, self._apart(signatures), others, troubles)

    def _one_by_one(
        self,
        rows: Sequence[_Row],
        schemes: Sequence[str],
        signatures: Sequence[bytes],
        others: Sequence[Sequence[Any]],
        troubles: DecodeProblems,
    ) -> Parts:
        """Return the columns, those rows read again that are out of the ordinary."""
        columns = [list(signatures), *map(list, others)]
        for place, (scheme, signature) in enumerate(zip(schemes, signatures, strict=True)):
            if scheme != self._scheme or len(signature) != self.size:
                for column, value in zip(columns, self._row(rows[place], troubles), strict=True):
                    column[place] = value
        blank = bytes(self.size)
        return Parts(b"".join([signature or blank for signature in columns[0]]), *columns[1:])

    def _signatures(self, rows: Sequence[_Row]) -> bytes | list[bytes]:
        """Return all signatures as one, or each, where they are not all of the same form.

        Raises:
            ValueError: one is no base64, or one of several; so do other errors.
        """
        texts = _single(rows, self._signature, _NO_SIGNATURE)
        if self._exactly and set(map(len, texts)) == {self._exactly}:
            # Characters that are none of base64 are passed over, so that the sum is too small then.
            joined = a2b_base64("".join(texts))
            if len(joined) == len(rows) * self.size:
                return joined
        most = self._characters
        return [a2b_base64(pad_base64(text[:most]), strict_mode=True) for text in texts]

    def _heads(self, rows: Sequence[_Row], signatures: bytes | Sequence[bytes]) -> Sequence[Sequence[Any]]:
        """Return schemes, shingles, languages and digests.

        Raises:
            ValueError: a value is out of the ordinary, or one of several; so do other errors.
        """
        texts = _single(rows, self._digest, _NO_DIGEST)
        if max(map(len, texts)) > LONGEST_DIGEST:
            raise ValueError
        if self._seal is not None:
            texts = list(map(self._unsealed, texts, self._apart(signatures)))
        # One split for all; what stands between them shows that each has as many parts as it should.
        joined = ".\0.".join(texts)
        parts = joined.split(".")
        between = parts[4::5]
        if len(parts) != 5 * len(texts) - 1 or joined.count("\0") != len(between) or set(between) - {"\0"}:
            raise ValueError
        schemes, languages, counted, digests = (parts[place::5] for place in range(4))
        shingles = list(map(int, counted))
        if min(shingles) < 0 or max(shingles) > _MOST:
            raise ValueError
        return schemes, shingles, languages, digests

    def _apart(self, signatures: bytes | Sequence[bytes]) -> Sequence[bytes]:
        """Return each signature by itself."""
        if not isinstance(signatures, bytes):
            return signatures
        size = self.size
        return [signatures[at : at + size] for at in range(0, len(signatures), size)]

    def _trusted(self, row: _Row) -> Fingerprint | None:
        """Return the fingerprint of a row, None where it can't be read or lacks the seal it should have."""
        try:
            stored = Fingerprint.from_field(self._parts(row))
        except InputError:
            return None
        forged = stored.seal if self._seal is None else not self._seal.fits(stored)
        return None if forged else stored

    def _unsealed(self, text: str, signature: bytes) -> str:
        """Return a stored digest without its seal; nobody's where it has none that holds."""
        head, _, seal = text.rpartition(".")
        return head if self._seal and self._seal.holds(head, signature, seal) else _NO_DIGEST[0]

    def _row(self, row: _Row, troubles: DecodeProblems) -> tuple[bytes, int, str, Any]:
        if not self._readable(row.get(self._keywords, ())):
            return self._without(row, troubles)
        stored = self._trusted(row)
        if stored is None:
            return self._without(row, troubles)
        if stored.scheme != self._scheme:
            troubles.other_schemes[stored.scheme] += 1
            return b"", -1, "", (stored.scheme, stored.digest) if stored.digest else ""
        if not stored.signature:
            troubles.unsigned += 1
            return b"", -1, stored.lang, stored.digest
        if len(stored.signature) != self.size or not 0 <= stored.shingles <= _MOST:
            return self._without(row, troubles)
        return stored.signature, stored.shingles, stored.lang, stored.digest

    def _readable(self, keywords: object) -> bool:
        """Tell whether these may be the supershingles of a document: no more texts than the scheme makes."""
        if not isinstance(keywords, list | tuple) or len(keywords) > self._groups:
            return False
        return all(isinstance(word, str) and len(word) <= LONGEST_DIGEST for word in keywords)

    def _parts(self, row: _Row) -> dict[str, Any]:
        prefix = self._prefix
        return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}

    def _without(self, row: _Row, troubles: DecodeProblems) -> tuple[bytes, int, str, Any]:
        if any(name.startswith(self._prefix) for name in row):
            troubles.unreadable += 1
        else:
            troubles.unsigned += 1
        return b"", -1, "", ""


#: Parts of the field of fingerprints: until when a placeholder keeps its place, and for which attempt.
PENDING, ATTEMPT = "pending", "attempt"


def is_placeholder(source: Mapping[str, Any], field: str) -> bool:
    """Tell whether a source is that of a placeholder, which is no document yet, or never becomes one."""
    return PENDING in stored_parts(source, field)


def placeholder_query(field: str) -> JSON:
    """Return the query that finds placeholders: none where no gate was ever opened."""
    return {"exists": {"field": f"{field}.{PENDING}"}}
