"""The stored fingerprints of a list of hits, read as columns."""

from binascii import a2b_base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError
from shinglefold.model import Bytes, Fingerprint, Int64s
from shinglefold.rerank.hits import Hit, field_values, moment, stored_values
from shinglefold.rerank.options import Scope
from shinglefold.scheme import Scheme

#: Shingles no text has more of; what floats hold exactly.
_MOST = 2**50
#: Characters of a stored digest with scheme, language and shingles, and of a supershingle.
_LONGEST_DIGEST = 300
#: What stands for the parts that a hit does not have.
_NO_DIGEST, _NO_SIGNATURE = ("..0.",), ("",)
#: OpenSearch leaves the padding out when it reads doc values; too much of it does no harm.
_PADDING = "=="
_Row = Mapping[str, Any]


class _Parts(NamedTuple):
    """Of each row its signature, shingles (−1 without a signature), language and digest."""

    signatures: list[Any]
    shingles: list[Any]
    languages: list[Any]
    digests: list[Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """The fingerprints of n hits as columns; equal texts have equal codes.

    ``signatures``: uint8 (n, B), zero where not ``signed``. ``shingles``: int64 (n,).
    ``languages``, ``digests``: int32 (n,), a code each, digest −1 where there is none.
    ``scopes``: float64 (n, S), a code or seconds; NaN where the hit has no value.
    ``keywords``: the supershingles of each hit.
    """

    signatures: Bytes
    signed: NDArray[np.bool_]
    shingles: Int64s
    languages: NDArray[np.int32]
    digests: NDArray[np.int32]
    scopes: NDArray[np.float64]
    keywords: tuple[Sequence[str], ...]

    def __len__(self) -> int:
        return len(self.signed)

    def take(self, rows: Sequence[int]) -> "Columns":
        """Return the fingerprints of some rows."""
        index = np.asarray(rows, np.int64)
        return Columns(
            self.signatures[index],
            self.signed[index],
            self.shingles[index],
            self.languages[index],
            self.digests[index],
            self.scopes[index],
            tuple(self.keywords[row] for row in rows),
        )

    def join(self, other: "Columns") -> "Columns":
        """Return these fingerprints and then the other ones."""
        return Columns(
            np.concatenate((self.signatures, other.signatures)),
            np.concatenate((self.signed, other.signed)),
            np.concatenate((self.shingles, other.shingles)),
            np.concatenate((self.languages, other.languages)),
            np.concatenate((self.digests, other.digests)),
            np.concatenate((self.scopes, other.scopes)),
            self.keywords + other.keywords,
        )


@dataclass(slots=True)
class Counts:
    """What was seen in the hits read.

    ``unsigned``: hits of this scheme with too little text to have a signature, and hits with no fingerprint;
    ``unreadable``: hits whose fingerprint is damaged; ``other_schemes`` and ``languages``: hits by name;
    ``earlier``: hits that match one shown on an earlier page of a cursor; ``repeated``: further places of
    documents that the list has twice.
    """

    hits: int = 0
    repeated: int = 0
    unsigned: int = 0
    unreadable: int = 0
    earlier: int = 0
    other_schemes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


class Reader:
    """Reads hits into columns, block after block, with the same codes for the same texts throughout."""

    def __init__(self, scheme: Scheme, dedup: str, scopes: Sequence[Scope] = ()) -> None:
        self.counts = Counts()
        self._scheme = scheme.id
        self._dedup = dedup
        self._digest, self._signature, self._keywords = (
            f"{dedup}.{part}" for part in ("digest", "signature", "supershingles")
        )
        self._size = -(-scheme.sketch.values * scheme.sketch.bits // 8)
        #: Characters of a signature that are looked at; more of them than it may have make it too long.
        self._characters = 4 * self._size // 3 + 8
        self._groups = scheme.sketch.groups
        self._scopes = tuple(scopes)
        self._codes: dict[object, int] = {}

    def read(self, hits: Sequence[Hit]) -> Columns:
        """Return the fingerprints of hits; a damaged one counts as none. Cost: about 1 µs a hit."""
        self.counts.hits += len(hits)
        rows = [
            fields
            if "_source" not in hit and (fields := hit.get("fields"))
            else stored_values(hit, self._dedup)
            for hit in hits
        ]
        keywords = [row.get(self._keywords, ()) for row in rows]
        signatures, shingles, languages, digests = self._columns(rows, keywords)
        blank = bytes(self._size)
        joined = b"".join(signatures)
        if len(joined) < len(rows) * self._size:
            joined = b"".join([signature or blank for signature in signatures])
        lengths = np.array(shingles, np.int64)
        return Columns(
            np.frombuffer(joined, np.uint8).reshape(len(rows), self._size),
            lengths >= 0,
            lengths,
            self._language_codes(languages),
            self._digest_codes(digests),
            self._scope_columns(hits),
            tuple(
                [words if signature else () for words, signature in zip(keywords, signatures, strict=True)]
            ),
        )

    def _language_codes(self, languages: Sequence[str]) -> NDArray[np.int32]:
        found = Counter(languages)
        code = self._codes
        codes = {language: code.setdefault(language, len(code)) for language in found}
        del found[""]
        self.counts.languages.update(found)
        return np.array([codes[language] for language in languages], np.int32)

    def _digest_codes(self, digests: Sequence[object]) -> NDArray[np.int32]:
        code = self._codes
        return np.array([code.setdefault(text, len(code)) if text else -1 for text in digests], np.int32)

    def _columns(self, rows: Sequence[_Row], keywords: Sequence[Any]) -> _Parts:
        """Return the columns, each in one go where it can be: hardly any row is out of the ordinary."""
        try:
            schemes, columns = self._in_one_go(rows)
            if any(keywords) and not all(map(self._readable, keywords)):
                raise ValueError
        except (LookupError, TypeError, ValueError, AttributeError):
            schemes, columns = [""] * len(rows), _Parts(*([b""] * len(rows) for _ in _Parts._fields))
        if set(schemes) == {self._scheme} and set(map(len, columns.signatures)) == {self._size}:
            return columns
        for place, (scheme, signature) in enumerate(zip(schemes, columns.signatures, strict=True)):
            if scheme != self._scheme or len(signature) != self._size:
                for column, value in zip(columns, self._row(rows[place]), strict=True):
                    column[place] = value
        return columns

    def _in_one_go(self, rows: Sequence[_Row]) -> tuple[Sequence[str], _Parts]:
        """Return schemes and columns.

        Raises:
            ValueError: a value is out of the ordinary; so do other errors.
        """
        digest, signature = self._digest, self._signature
        texts = [row.get(digest, _NO_DIGEST)[0] for row in rows]
        if len(max(texts, key=len, default="")) > _LONGEST_DIGEST:
            raise ValueError
        heads = [text.split(".") for text in texts]
        schemes, languages, shingles, digests = zip(*heads, strict=True)
        most = self._characters
        signatures = [a2b_base64(row.get(signature, _NO_SIGNATURE)[0][:most] + _PADDING) for row in rows]
        columns = _Parts(signatures, list(map(int, shingles)), list(languages), list(digests))
        if min(columns.shingles) < 0 or max(columns.shingles) > _MOST:
            raise ValueError
        return schemes, columns

    def _row(self, row: _Row) -> tuple[bytes, int, str, Any]:
        """Return signature, shingles (−1 without), language and digest of one hit.

        There is no language where there is no fingerprint. Digests of different schemes are never equal.
        """
        if not self._readable(row.get(self._keywords, ())):
            return self._without(row)
        try:
            stored = Fingerprint.from_field(self._parts(row))
            if stored.scheme != self._scheme:
                self.counts.other_schemes[stored.scheme] += 1
                return b"", -1, "", (stored.scheme, stored.digest) if stored.digest else ""
        except InputError:
            return self._without(row)
        if not stored.signature:
            self.counts.unsigned += 1
            return b"", -1, stored.lang, stored.digest
        if len(stored.signature) != self._size or not 0 <= stored.shingles <= _MOST:
            return self._without(row)
        return stored.signature, stored.shingles, stored.lang, stored.digest

    def _readable(self, keywords: object) -> bool:
        """Tell whether these may be the supershingles of a document: no more texts than the scheme makes."""
        if not isinstance(keywords, list | tuple) or len(keywords) > self._groups:
            return False
        return all(isinstance(word, str) and len(word) <= _LONGEST_DIGEST for word in keywords)

    def _parts(self, row: _Row) -> dict[str, Any]:
        prefix = f"{self._dedup}."
        return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}

    def _without(self, row: _Row) -> tuple[bytes, int, str, Any]:
        if any(name.startswith(f"{self._dedup}.") for name in row):
            self.counts.unreadable += 1
        else:
            self.counts.unsigned += 1
        return b"", -1, "", ""

    def _scope_columns(self, hits: Sequence[Hit]) -> NDArray[np.float64]:
        columns = np.full((len(hits), len(self._scopes)), np.nan)
        for column, scope in enumerate(self._scopes):
            for row, hit in enumerate(hits):
                values = field_values(hit, scope.field)
                if values:
                    columns[row, column] = self._scope_value(scope, values)
        return columns

    def _scope_value(self, scope: Scope, values: list[Any]) -> float:
        if scope.within is not None:
            seconds = moment(values[0])
            return np.nan if seconds is None else seconds
        key = (scope.field, *sorted(map(str, values)))
        return float(self._codes.setdefault(key, len(self._codes)))
