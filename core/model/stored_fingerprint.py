"""Reading stored fingerprints from sources and hits, singly or as columns; other content of the field."""

from binascii import a2b_base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_, itemgetter
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.documents import MISSING, get, json_type
from shinglefold.errors import InputError
from shinglefold.model.recipe import (
    PASSAGES,
)
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.values import LONGEST_DIGEST, Fingerprint, pad_base64

#: The most shingles of a text; a float holds the number exactly.
_MOST = 2**50
#: Default values for parts that a hit lacks.
_NO_DIGEST, _NO_SIGNATURE = ("..0.",), ("",)
_Row = Mapping[str, Any]
#: Parts of the fingerprint field in a placeholder: its expiry, and the intent it belongs to.
PENDING, ATTEMPT = "pending", "attempt"
#: The parts of a stored fingerprint.
FINGERPRINT_PARTS = frozenset(
    {"scheme", "lang", "shingles", "digest", "supershingles", "signature", PASSAGES}
)
#: What groups and gates store in the same field: group number, leader flag, and placeholders of gates.
BOOKKEEPING_PARTS = frozenset({"group", "leader", PENDING, ATTEMPT})
#: The most names shown in a message.
_SHOWN = 3


def stored_parts(source: object, path: str) -> dict[str, Any]:
    """Return the parts of the fingerprint in a source, {} if there is none.

    To an engine ``{"_dedup": {"digest": …}}``, ``{"_dedup.digest": …}`` and a list of objects are the same
    field. Duplicate parts become a list, which is rejected later.

    Args:
        path: the field; may be dotted.
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
    """Return the field if it is one object at the top level, as shinglefold writes it; else None."""
    if type(source) is not dict or type(found := source.get(path)) is not dict or "." in path:
        return None
    inside = f"{path}."
    return None if any(str(key).startswith(inside) for key in source) else found


def without_fingerprint(document: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    """Return a document without the field in any form; the same object if the field is missing."""
    if isinstance(document, list):
        items = [without_fingerprint(item, path) for item in document]
        return document if all(map(is_, items, document)) else items
    if not isinstance(document, Mapping) or _none_begins(document, path):
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


def _none_begins(document: Mapping[Any, Any], path: str) -> bool:
    """Return whether no key begins like the path, so that the document lacks the field."""
    try:
        return f"\n{path.partition('.')[0]}" not in "\n".join(("", *document))
    except TypeError:
        # A key is not a string.
        return False


def _below(key: object, path: str) -> str | None:
    """Return the rest of the path below a key: empty for the field or a part of it, None for other keys."""
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


def _single(rows: Sequence[_Row], name: str, default: Sequence[Any]) -> list[Any]:
    """Return the single value of a field in each row, or the default.

    Raises:
        ValueError: a row has several values or none. Other errors mean the same.
    """
    try:
        return [text for (text,) in map(itemgetter(name), rows)]
    except LookupError:
        return [text for row in rows for (text,) in (row.get(name, default),)]


class Parts(NamedTuple):
    """The fingerprints of rows, as columns.

    Attributes:
        signatures: the signatures of all rows, one after another; zeros for a missing one.
        shingles: −1 without a signature.
        languages: empty without a fingerprint.
        digests: those of different schemes are never equal.
    """

    signatures: bytes
    shingles: Sequence[int]
    languages: Sequence[str]
    digests: Sequence[Any]


@dataclass(slots=True)
class DecodeProblems:
    """Counts of rows that can't be compared: unsigned, unreadable, or of another scheme, by its id."""

    unsigned: int = 0
    unreadable: int = 0
    other_schemes: Counter[str] = field(default_factory=Counter)


class Decoder:
    """Decodes rows of stored fingerprints of one scheme, in one pass if all are regular.

    A row maps the names of fields to lists of values, as ``docvalue_fields`` return them.

    Args:
        seal: the key of the index. A fingerprint without its seal counts as unreadable; without a key, so
            does any sealed one, because its seal can't be verified.
    """

    def __init__(self, scheme: Scheme, path: str, seal: Seal | None = None) -> None:
        self._seal = seal
        self.size = -(-scheme.sketch.values * scheme.sketch.bits // 8)
        self._scheme = scheme.id
        self._prefix = f"{path}."
        self._digest, self._signature, self._keywords = (
            f"{path}.{part}" for part in ("digest", "signature", "supershingles")
        )
        #: Characters of a signature that are read: a few more than it may have, so too long ones are
        #: detected.
        self._characters = 4 * self.size // 3 + 8
        #: Characters of each signature if none has padding, so that all are decoded as one text; else 0.
        self._unpadded = self.size // 3 * 4 if self.size % 3 == 0 else 0
        self._groups = scheme.sketch.groups

    def keywords(self, rows: Sequence[_Row]) -> list[Any]:
        """Return the stored supershingles of each row."""
        return [row.get(self._keywords, ()) for row in rows]

    def decode(self, rows: Sequence[_Row], keywords: Sequence[Any], problems: DecodeProblems) -> Parts:
        """Return the rows as columns, and count the problems.

        Args:
            keywords: the supershingles of the rows, from ``keywords``.
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
        return self._one_by_one(rows, schemes, self._signature_list(signatures), others, problems)

    def _one_by_one(
        self,
        rows: Sequence[_Row],
        schemes: Sequence[str],
        signatures: Sequence[bytes],
        others: Sequence[Sequence[Any]],
        problems: DecodeProblems,
    ) -> Parts:
        """Return the columns; irregular rows are read one by one."""
        columns = [list(signatures), *map(list, others)]
        for place, (scheme, signature) in enumerate(zip(schemes, signatures, strict=True)):
            if scheme != self._scheme or len(signature) != self.size:
                for column, value in zip(columns, self._row(rows[place], problems), strict=True):
                    column[place] = value
        blank = bytes(self.size)
        return Parts(b"".join([signature or blank for signature in columns[0]]), *columns[1:])

    def _signatures(self, rows: Sequence[_Row]) -> bytes | list[bytes]:
        """Return all signatures joined, or a list if their lengths differ.

        Raises:
            ValueError: one is not base64, or a row has several. Other errors mean the same.
        """
        texts = _single(rows, self._signature, _NO_SIGNATURE)
        if self._unpadded and set(map(len, texts)) == {self._unpadded}:
            # The decoder skips characters outside base64; the result is then too short.
            joined = a2b_base64("".join(texts))
            if len(joined) == len(rows) * self.size:
                return joined
        most = self._characters
        return [a2b_base64(pad_base64(text[:most]), strict_mode=True) for text in texts]

    def _heads(self, rows: Sequence[_Row], signatures: bytes | Sequence[bytes]) -> Sequence[Sequence[Any]]:
        """Return schemes, shingles, languages and digests.

        Raises:
            ValueError: a value is irregular, or a row has several. Other errors mean the same.
        """
        texts = _single(rows, self._digest, _NO_DIGEST)
        if max(map(len, texts)) > LONGEST_DIGEST:
            raise ValueError
        if self._seal is not None:
            texts = list(map(self._remove_seal, texts, self._signature_list(signatures)))
        # One split for all rows; the separators show whether each has the right number of parts.
        joined = ".\0.".join(texts)
        parts = joined.split(".")
        between = parts[4::5]
        if len(parts) != 5 * len(texts) - 1 or joined.count("\0") != len(between) or set(between) - {"\0"}:
            raise ValueError
        schemes, languages, counted, digests = (parts[place::5] for place in range(4))
        # int() reads signs, spaces and underscores, too.
        if not "".join(counted).isdecimal() or not all(languages):
            raise ValueError
        shingles = list(map(int, counted))
        if max(shingles) > _MOST:
            raise ValueError
        return schemes, shingles, languages, digests

    def _signature_list(self, signatures: bytes | Sequence[bytes]) -> Sequence[bytes]:
        """Return the signatures as a list."""
        if not isinstance(signatures, bytes):
            return signatures
        size = self.size
        return [signatures[at : at + size] for at in range(0, len(signatures), size)]

    def _verify_row(self, row: _Row) -> Fingerprint | None:
        """Return the fingerprint of a row; None if it can't be read or its seal is wrong."""
        try:
            stored = Fingerprint.from_field(self._fields_of(row))
        except InputError:
            return None
        forged = stored.seal if self._seal is None else not self._seal.fits(stored)
        return None if forged else stored

    def _remove_seal(self, text: str, signature: bytes) -> str:
        """Return a stored digest without its seal; an empty one if the seal is wrong."""
        head, _, seal = text.rpartition(".")
        return head if self._seal and self._seal.holds(head, signature, seal) else _NO_DIGEST[0]

    def _row(self, row: _Row, problems: DecodeProblems) -> tuple[bytes, int, str, Any]:
        if not self._readable(row.get(self._keywords, ())):
            return self._without(row, problems)
        stored = self._verify_row(row)
        if stored is None:
            return self._without(row, problems)
        if stored.scheme != self._scheme:
            problems.other_schemes[stored.scheme] += 1
            return b"", -1, "", (stored.scheme, stored.digest) if stored.digest else ""
        if not stored.signature:
            problems.unsigned += 1
            return b"", -1, stored.lang, stored.digest
        if len(stored.signature) != self.size or not 0 <= stored.shingles <= _MOST:
            return self._without(row, problems)
        return stored.signature, stored.shingles, stored.lang, stored.digest

    def _readable(self, keywords: object) -> bool:
        """Return whether a value can be the supershingles of a document, by number and length."""
        if not isinstance(keywords, list | tuple) or len(keywords) > self._groups:
            return False
        return all(isinstance(word, str) and len(word) <= LONGEST_DIGEST for word in keywords)

    def _fields_of(self, row: _Row) -> dict[str, Any]:
        prefix = self._prefix
        return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}

    def _without(self, row: _Row, problems: DecodeProblems) -> tuple[bytes, int, str, Any]:
        if any(name.startswith(self._prefix) for name in row):
            problems.unreadable += 1
        else:
            problems.unsigned += 1
        return b"", -1, "", ""


def is_placeholder(source: Mapping[str, Any], field: str) -> bool:
    """Return whether a source is a placeholder of the gate, which is not a document."""
    return PENDING in stored_parts(source, field)


def placeholder_query(field: str) -> JSON:
    """Return the query that matches the placeholders of the gate."""
    return {"exists": {"field": f"{field}.{PENDING}"}}


def foreign_content(document: Mapping[str, Any], field: str) -> str:
    """Describe other data in the fingerprint field of a document; return "" if there is none.

    A damaged or forged fingerprint does not count: it is replaced.

    Args:
        field: the fingerprint field; may be a dotted path.
    """
    others = stored_parts(document, field).keys() - FINGERPRINT_PARTS - BOOKKEEPING_PARTS
    if others:
        return f"[{field}] holds {', '.join(sorted(map(repr, others))[:_SHOWN])}, no fingerprint"
    # To an engine, one name with dots is the same field.
    for found in (get(document, field), document.get(field, MISSING)):
        values = found if isinstance(found, list) else [found]
        if not all(one is MISSING or one is None or isinstance(one, Mapping | list) for one in values):
            return f"[{field}] is {json_type(found)}, no fingerprint"
    return ""


def overwrite_refusal(document: Mapping[str, Any], field: str) -> str:
    """Return an error message if a fingerprint would overwrite other data in a field, else ""."""
    content = foreign_content(document, field)
    another = 'keep fingerprints in another field (the setting "field", or setup --dedup-field)'
    return f"{content}, and would be lost: {another}" if content else ""
