"""Read the documents of an index into compact columns of keys, digests and fingerprints."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.gate.protocol.pending_document import GROUP, LEADER, GateFields
from shinglefold.maintenance.reconcile import DocumentKey, key_of
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder, stored_parts
from shinglefold.model.values import Bytes, Fingerprint, Int64s, Uint64s, fact_codes, split_digest
from shinglefold.rerank.hits import field_values, moment

NO_GROUP = -1
#: The version of a document that has to be read again before it is written.
UNKNOWN = (-1, -1)
#: The bytes of a supershingle in its column; the longest has 7 characters.
_SUPERSHINGLE = 8
_NUMBER_LIMIT = 2**63
#: The first part of the sort key of a document without a value.
_LAST = 2
_NO_NUMBERS = np.zeros((0, 7), np.int64)


@dataclass(slots=True)
class Keys:
    """The keys of documents: ids, and codes for index and routing, which many have in common."""

    _ids: list[str] = field(default_factory=list)
    _known: dict[tuple[str, str | None], int] = field(default_factory=dict)
    _codes: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, key: DocumentKey) -> None:
        """Add the key of a document."""
        self._ids.append(key.id)
        self._codes.append(self._known.setdefault((key.index, key.routing), len(self._known)))

    def __len__(self) -> int:
        return len(self._ids)

    def several(self, places: Sequence[int]) -> list[DocumentKey]:
        """Return the keys of the documents at these positions."""
        known = list(self._known)
        pairs = ((known[self._codes[place]], self._ids[place]) for place in places)
        return [DocumentKey(index, id_, routing) for (index, routing), id_ in pairs]

    def __getitem__(self, place: int) -> DocumentKey:
        (key,) = self.several([place])
        return key

    def by_id(self) -> Int64s:
        """Return the positions of all documents, ordered by id, then by index and routing: int64 (D,)."""
        named = sorted(self._known, key=lambda one: (one[0], one[1] or ""))
        rank = np.empty(len(named), np.int64)
        rank[[self._known[one] for one in named]] = np.arange(len(named))
        codes = np.frombuffer(self._codes, np.int32) if self._codes else np.zeros(0, np.int32)
        places = np.argsort(rank[codes], kind="stable").tolist()
        places.sort(key=self._ids.__getitem__)
        return np.array(places, np.int64)


@dataclass(slots=True)
class Digests:
    """The text digests of documents in one buffer; empty for a document without one."""

    _bytes: bytearray = field(default_factory=bytearray)
    _lengths: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, digest: str) -> None:
        """Add the digest of a document, "" for none."""
        encoded = digest.encode("utf-8", "surrogatepass")
        self._bytes += encoded
        self._lengths.append(len(encoded))

    def codes_and_digests(self) -> tuple[Int64s, NDArray[np.bytes_]]:
        """Return a code for each document, −1 for none, and the digests by code: int64 (D,), bytes (T,)."""
        lengths = np.frombuffer(self._lengths, np.int32) if self._lengths else np.zeros(0, np.int32)
        present = np.flatnonzero(lengths)
        codes = np.full(len(lengths), -1, np.int64)
        if not len(present):
            return codes, np.zeros(0, "S1")
        width = int(lengths.max())
        if bool((lengths[present] == width).all()):
            digests = np.frombuffer(self._bytes, f"S{width}")
        else:
            ends = np.cumsum(lengths)[present].tolist()
            begins = (np.cumsum(lengths) - lengths)[present].tolist()
            each = [bytes(self._bytes[begin:end]) for begin, end in zip(begins, ends, strict=True)]
            digests = np.array(each, f"S{width}")
        distinct, codes[present] = np.unique(digests, return_inverse=True)
        return codes, distinct


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """D documents by columns.

    Attributes:
        supershingles: uint64 (D, M).
        signatures: uint8 (D, B).
        signed: whether a document has a signature, bool (D,).
        texts: a code for each canonical text, −1 for none; ``digests`` has the digests by code.
        scopes: a code for equal values of the scope, −1 if one is missing; ``values`` has them by code.
        groups: −1 for none.
        ordinals: sort keys; of documents that match, the one with the least may lead.

    All other columns, and the codes, are int64 (D,).
    """

    keys: Keys
    supershingles: Uint64s
    signatures: Bytes
    signed: NDArray[np.bool_]
    shingles: Int64s
    texts: Int64s
    scopes: Int64s
    groups: Int64s
    leads: NDArray[np.bool_]
    seq_nos: Int64s
    terms: Int64s
    ordinals: Sequence[tuple[int, float, str]]
    digests: NDArray[np.bytes_]
    values: Sequence[list[list[Any]]]

    def __len__(self) -> int:
        return len(self.keys)

    def facts(self) -> Int64s | None:
        """Return a code for the facts of each document, 0 if it has none; None if no document has facts."""
        # The last row stands for no digest.
        codes = fact_codes([*(bytes(one).decode("utf-8", "surrogatepass") for one in self.digests), ""])
        return None if codes is None else codes[self.texts]

    def digest(self, place: int) -> str:
        """Return the digest of a document's text, "" if it has none."""
        code = int(self.texts[place])
        return "" if code < 0 else bytes(self.digests[code]).decode("utf-8", "surrogatepass")


@dataclass(slots=True)
class CensusReader:
    """Reads a census: pages of hits in, columns out.

    Args:
        order: the path of the field whose values decide which documents lead, "" for none.
        values: brings the values of the scope into one form.

    Attributes:
        unreadable: how many documents have no readable fingerprint of the scheme.
        reserved: the group numbers of those documents.
    """

    scheme: Scheme
    path: str
    seal: Seal | None
    scope: Sequence[str]
    order: str
    values: Values
    unreadable: int = 0
    reserved: set[int] = field(default_factory=set)
    _keys: Keys = field(default_factory=Keys)
    _supershingles: bytearray = field(default_factory=bytearray)
    _signatures: bytearray = field(default_factory=bytearray)
    _numbers: "array[int]" = field(default_factory=lambda: array("q"))
    _ordinals: list[tuple[int, float, str]] = field(default_factory=list)
    _digests: Digests = field(default_factory=Digests)
    _scopes: dict[tuple[tuple[str, ...], ...], int] = field(default_factory=dict)
    _scope_values: list[list[list[Any]]] = field(default_factory=list)

    @property
    def fields(self) -> list[str]:
        """The fields of documents to read."""
        scopes = map(self.values.source, self.scope)
        return list(dict.fromkeys([self.path, *scopes, *([self.order] if self.order else [])]))

    @property
    def unordered(self) -> bool:
        """Whether no document has a value of the field that decides which ones lead."""
        return bool(self._ordinals) and all(kind == _LAST for kind, _, _ in self._ordinals)

    def add(self, hits: Sequence[Mapping[str, Any]]) -> None:
        """Add the documents of a page. Cost: about 15 µs a document; 350 bytes with the default scheme."""
        for hit in hits:
            parts = stored_parts(hit["_source"], self.path)
            group = parts.get(GROUP)
            number = group if isinstance(group, int) and 0 <= group < _NUMBER_LIMIT else NO_GROUP
            fingerprint = self._readable(parts)
            if fingerprint is not None:
                self._add(hit, fingerprint, number, parts.get(LEADER) is True)
            elif "scheme" in parts or not is_placeholder(hit["_source"], self.path):
                # A placeholder of a gate is not a document yet.
                self.unreadable += 1
                self.reserved |= {number} - {NO_GROUP}

    def census(self) -> Census:
        """Return the columns of the added documents, and forget these."""
        sketch = self.scheme.sketch
        count = len(self._keys)
        numbers = np.frombuffer(self._numbers, np.int64).reshape(count, 7) if count else _NO_NUMBERS
        columns = [np.ascontiguousarray(numbers[:, column]) for column in range(7)]
        shingles, signed, scopes, groups, leads, seq_nos, terms = columns
        texts, digests = self._digests.codes_and_digests()
        census = Census(
            self._keys,
            np.frombuffer(self._supershingles, np.uint64).reshape(count, sketch.groups),
            np.frombuffer(self._signatures, np.uint8).reshape(count, self._size),
            signed.astype(np.bool_),
            shingles,
            texts,
            scopes,
            groups,
            leads.astype(np.bool_),
            seq_nos,
            terms,
            self._ordinals,
            digests,
            self._scope_values,
        )
        # Free the buffers that were copied.
        self._numbers, self._digests = array("q"), Digests()
        self._keys, self._supershingles, self._signatures = Keys(), bytearray(), bytearray()
        self._ordinals, self._scope_values, self._scopes = [], [], {}
        return census

    @property
    def _size(self) -> int:
        return -(-self.scheme.sketch.values * self.scheme.sketch.bits // 8)

    def _readable(self, parts: Mapping[str, Any]) -> Fingerprint | None:
        """Return the fingerprint of the scheme, None if there is none or it can't be trusted."""
        if parts.get("scheme") != self.scheme.id:
            return None
        try:
            found = Fingerprint.from_field(parts)
        except InputError:
            return None
        forged = found.seal if self.seal is None else not self.seal.fits(found)
        whole = len(found.signature) == self._size and len(found.supershingles) == self.scheme.sketch.groups
        return None if forged or (found.signature and not whole) else found

    def _add(self, hit: Mapping[str, Any], found: Fingerprint, group: int, leads: bool) -> None:
        self._keys.append(key_of(hit))
        self._digests.append(found.digest)
        supershingles = found.supershingles if found.signature else ("",) * self.scheme.sketch.groups
        for one in supershingles:
            self._supershingles += one.encode()[:_SUPERSHINGLE].ljust(_SUPERSHINGLE, b"\0")
        self._signatures += found.signature or bytes(self._size)
        scope, version = self._scope(hit), (hit.get("_seq_no", -1), hit.get("_primary_term", -1))
        if GateFields(self.path).has_other_form(hit["_source"]):
            version = UNKNOWN
        self._numbers.extend((found.shingles, bool(found.signature), scope, group, leads, *version))
        if self.order:
            self._ordinals.append(_ordinal(field_values(hit, self.order)))

    def _scope(self, hit: Mapping[str, Any]) -> int:
        """Return a code for the values of the scope, −1 if a field has none."""
        values = [self.values.stored(name, self.values.read(hit, name)) for name in self.scope]
        if not all(values):
            return -1
        code = self._scopes.setdefault(
            tuple(tuple(sorted(map(str, one))) for one in values), len(self._scopes)
        )
        if code == len(self._scope_values):
            self._scope_values.append(values)
        return code


def digest_of(parts: Mapping[str, Any]) -> str:
    """Return the text digest of a stored fingerprint, "" if it has none."""
    stored = parts.get("digest", "")
    return split_digest(stored).digest if isinstance(stored, str) else ""


def _ordinal(values: Sequence[Any]) -> tuple[int, float, str]:
    """Return the sort key of a document: numbers and dates come first, then texts, then no value."""
    if not values:
        return _LAST, 0.0, ""
    first = values[0]
    if isinstance(first, int | float) and not isinstance(first, bool):
        try:
            return 0, float(first), ""
        except OverflowError:
            return 0, inf if first > 0 else -inf, ""
    seconds = moment(first)
    return (0, seconds, "") if seconds is not None else (1, 0.0, str(first))
