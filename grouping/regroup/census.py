"""Read what groups are made of from an index, into compact columns of names, digests and fingerprints."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError
from shinglefold.grouping.gate.protocol.placeholders import GROUP, LEADER, GateFields
from shinglefold.grouping.scope_values import Values
from shinglefold.maintenance.reconcile import Key, key_of
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder, stored_parts
from shinglefold.model.values import Bytes, Fingerprint, Int64s, Uint64s, split_digest
from shinglefold.rerank.hits import field_values, moment

NO_GROUP = -1
#: The version of a document that has to be read again before it is written.
UNKNOWN = (-1, -1)
#: Bytes of a keyword; the longest has 7 characters.
_WORD = 8
_GREATEST = 2**63
#: The first of what a document without a value is sorted by.
_LAST = 2
_NOTHING = np.zeros((0, 8), np.int64)


@dataclass(slots=True)
class Keys:
    """What names documents: ids, and by code the index and the routing that many have in common."""

    _ids: list[str] = field(default_factory=list)
    _places: dict[tuple[str, str | None], int] = field(default_factory=dict)
    _codes: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, key: Key) -> None:
        """Add the name of a document."""
        self._ids.append(key.id)
        self._codes.append(self._places.setdefault((key.index, key.routing), len(self._places)))

    def __len__(self) -> int:
        return len(self._ids)

    def several(self, places: Sequence[int]) -> list[Key]:
        """Return the names of the documents at some places."""
        known = list(self._places)
        found = []
        for place in places:
            index, routing = known[self._codes[place]]
            found.append(Key(index, self._ids[place], routing))
        return found

    def __getitem__(self, place: int) -> Key:
        (key,) = self.several([place])
        return key

    def by_id(self) -> Int64s:
        """Return all places by id, of equal ones by index and routing: int64 (D,)."""
        named = sorted(self._places, key=lambda one: (one[0], one[1] or ""))
        rank = np.empty(len(named), np.int64)
        rank[[self._places[one] for one in named]] = np.arange(len(named))
        codes = np.frombuffer(self._codes, np.int32) if self._codes else np.zeros(0, np.int32)
        places = np.argsort(rank[codes], kind="stable").tolist()
        places.sort(key=self._ids.__getitem__)
        return np.array(places, np.int64)


@dataclass(slots=True)
class Digests:
    """The digests of documents, one after the other; where one has none, nothing."""

    _told: bytearray = field(default_factory=bytearray)
    _lengths: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, digest: str) -> None:
        """Add that of a document, empty for none."""
        made = digest.encode("utf-8", "surrogatepass")
        self._told += made
        self._lengths.append(len(made))

    def coded(self) -> tuple[Int64s, NDArray[np.bytes_]]:
        """Return a code a document, −1 for none, and the distinct digests by code: int64 (D,), bytes (T,)."""
        lengths = np.frombuffer(self._lengths, np.int32) if self._lengths else np.zeros(0, np.int32)
        there = np.flatnonzero(lengths)
        codes = np.full(len(lengths), -1, np.int64)
        if not len(there):
            return codes, np.zeros(0, "S1")
        width = int(lengths.max())
        if bool((lengths[there] == width).all()):
            told = np.frombuffer(self._told, f"S{width}")
        else:
            ends = np.cumsum(lengths)[there].tolist()
            begins = (np.cumsum(lengths) - lengths)[there].tolist()
            told = np.array([bytes(self._told[a:b]) for a, b in zip(begins, ends, strict=True)], f"S{width}")
        distinct, codes[there] = np.unique(told, return_inverse=True)
        return codes, distinct


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """D documents by columns.

    ``supershingles``: uint64 (D, M). ``signatures``: uint8 (D, B). ``signed``: bool (D,). ``shingles``,
    ``texts`` (a code a canonical text, −1 for none), ``languages``, ``scopes`` (a code for equal values, −1
    where one is missing), ``groups`` (−1 for none), ``seq_nos``, ``terms``: int64 (D,). ``leads``: bool (D,).
    ``digests``: of the texts, by code. ``values``: of the scopes, by code.
    """

    keys: Keys
    supershingles: Uint64s
    signatures: Bytes
    signed: NDArray[np.bool_]
    shingles: Int64s
    texts: Int64s
    languages: Int64s
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

    def digest(self, place: int) -> str:
        """Return the digest of a document's text, empty where it has none."""
        code = int(self.texts[place])
        return "" if code < 0 else bytes(self.digests[code]).decode("utf-8", "surrogatepass")


@dataclass(slots=True)
class CensusReader:
    """Takes a census: pages of hits in, columns out.

    Args:
        order: where documents have what they may lead by, empty for none.
        values: brings those of the scope into one form.

    Attributes:
        left: documents without a readable fingerprint of the scheme.
        reserved: the numbers of groups that those have.
    """

    scheme: Scheme
    path: str
    seal: Seal | None = None
    scope: Sequence[str] = ()
    order: str = ""
    values: Values | None = None
    left: int = 0
    reserved: set[int] = field(default_factory=set)
    _keys: Keys = field(default_factory=Keys)
    _words: bytearray = field(default_factory=bytearray)
    _signatures: bytearray = field(default_factory=bytearray)
    _numbers: "array[int]" = field(default_factory=lambda: array("q"))
    _ordinals: list[tuple[int, float, str]] = field(default_factory=list)
    _digests: Digests = field(default_factory=Digests)
    _languages: dict[str, int] = field(default_factory=dict)
    _scopes: dict[tuple[tuple[str, ...], ...], int] = field(default_factory=dict)
    _told: list[list[list[Any]]] = field(default_factory=list)

    @property
    def fields(self) -> list[str]:
        """The fields of documents that it needs."""
        scopes = self.scope if self.values is None else map(self.values.source, self.scope)
        return list(dict.fromkeys([self.path, *scopes, *([self.order] if self.order else [])]))

    @property
    def unordered(self) -> bool:
        """Whether no document that was taken has what they are to lead by."""
        return bool(self._ordinals) and all(kind == _LAST for kind, _, _ in self._ordinals)

    def take(self, hits: Sequence[Mapping[str, Any]]) -> None:
        """Add the documents of a page. Cost: about 15 µs a document; 350 bytes with the default scheme."""
        for hit in hits:
            parts = stored_parts(hit["_source"], self.path)
            group = parts.get(GROUP)
            number = group if isinstance(group, int) and 0 <= group < _GREATEST else NO_GROUP
            made = self._readable(parts)
            if made is not None:
                self._add(hit, made, number, parts.get(LEADER) is True)
            elif "scheme" in parts or not is_placeholder(hit["_source"], self.path):
                # A placeholder of the gate is no document yet.
                self.left += 1
                self.reserved |= {number} - {NO_GROUP}

    def census(self) -> Census:
        """Return the columns of what was taken since the last time."""
        sketch = self.scheme.sketch
        count = len(self._keys)
        numbers = np.frombuffer(self._numbers, np.int64).reshape(count, 8) if count else _NOTHING
        columns = [np.ascontiguousarray(numbers[:, column]) for column in range(8)]
        shingles, signed, languages, scopes, groups, leads, seq_nos, terms = columns
        texts, digests = self._digests.coded()
        made = Census(
            self._keys,
            np.frombuffer(self._words, np.uint64).reshape(count, sketch.groups),
            np.frombuffer(self._signatures, np.uint8).reshape(count, self._size),
            signed.astype(np.bool_),
            shingles,
            texts,
            languages,
            scopes,
            groups,
            leads.astype(np.bool_),
            seq_nos,
            terms,
            self._ordinals,
            digests,
            self._told,
        )
        # Each column is held once: those it was made of go.
        self._numbers, self._digests = array("q"), Digests()
        self._keys, self._words, self._signatures = Keys(), bytearray(), bytearray()
        self._ordinals, self._told, self._scopes = [], [], {}
        return made

    @property
    def _size(self) -> int:
        return -(-self.scheme.sketch.values * self.scheme.sketch.bits // 8)

    def _readable(self, parts: Mapping[str, Any]) -> Fingerprint | None:
        """Return the fingerprint of the scheme, None where there is none or it can't be trusted."""
        if parts.get("scheme") != self.scheme.id:
            return None
        try:
            made = Fingerprint.from_field(parts)
        except InputError:
            return None
        forged = made.seal if self.seal is None else not self.seal.fits(made)
        whole = len(made.signature) == self._size and len(made.supershingles) == self.scheme.sketch.groups
        if forged or (made.signature and not whole):
            return None
        return made

    def _add(self, hit: Mapping[str, Any], made: Fingerprint, group: int, leads: bool) -> None:
        self._keys.append(key_of(hit))
        self._digests.append(made.digest)
        words = made.supershingles if made.signature else ("",) * self.scheme.sketch.groups
        for word in words:
            self._words += word.encode()[:_WORD].ljust(_WORD, b"\0")
        self._signatures += made.signature or bytes(self._size)
        language = self._languages.setdefault(made.lang, len(self._languages))
        scope, version = self._scope(hit), (hit.get("_seq_no", -1), hit.get("_primary_term", -1))
        if GateFields(self.path).has_other_form(hit["_source"]):
            version = UNKNOWN
        self._numbers.extend((made.shingles, bool(made.signature), language, scope, group, leads, *version))
        if self.order:
            self._ordinals.append(_ordinal(field_values(hit, self.order)))

    def _scope(self, hit: Mapping[str, Any]) -> int:
        """Return a code for the values of the scope, −1 where one has none."""
        values = [self._kept(hit, name) for name in self.scope]
        if not all(values):
            return -1
        code = self._scopes.setdefault(
            tuple(tuple(sorted(map(str, one))) for one in values), len(self._scopes)
        )
        if code == len(self._told):
            self._told.append(values)
        return code

    def _kept(self, hit: Mapping[str, Any], name: str) -> list[Any]:
        if self.values is None:
            return field_values(hit, name)
        return self.values.stored(name, self.values.read(hit, name))


def digest_of(parts: Mapping[str, Any]) -> str:
    """Return the digest of the text of a stored fingerprint, empty where it has none."""
    stored = parts.get("digest", "")
    return split_digest(stored).digest if isinstance(stored, str) else ""


def _ordinal(values: Sequence[Any]) -> tuple[int, float, str]:
    """Return what to sort a document by: a number, a date, or a text after those; nothing last."""
    if not values:
        return _LAST, 0.0, ""
    first = values[0]
    if isinstance(first, int | float) and not isinstance(first, bool):
        return 0, float(first), ""
    seconds = moment(first)
    return (0, seconds, "") if seconds is not None else (1, 0.0, str(first))
