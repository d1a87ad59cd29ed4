"""Reading hits: the values of a field, and the stored fingerprints of a whole list as columns."""

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.model import UNDETERMINED, Bytes, Int64s
from shinglefold.rerank.options import Scope
from shinglefold.scheme import Scheme

Hit = Mapping[str, Any]
_NOTHING: Mapping[str, Any] = {}
#: Shingles no text has more of; what floats hold exactly.
_MOST = 2**50


def field_values(hit: Hit, name: str) -> list[Any]:
    """Return the values of a field, from ``fields`` where they are, else from ``_source``; [] where none."""
    found = (hit.get("fields") or _NOTHING).get(name)
    if found is None:
        found = stored_value(hit.get("_source"), name)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def identity(hit: Hit) -> tuple[Any, Any]:
    """Return what no two documents share: index and id."""
    return hit.get("_index"), hit.get("_id")


def stored_value(source: object, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a dotted path; a key may itself hold dots, as in documents stored flat."""
    if not isinstance(source, Mapping):
        return None
    if name in source:
        return source[name]
    head, _, rest = name.partition(".")
    return stored_value(source.get(head), rest) if rest else None


def moment(value: object) -> float | None:
    """Return a date of a hit in seconds since 1970: ISO 8601 or milliseconds; None for neither."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.lstrip("-").isdigit()):
            return float(value) / 1000
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if parsed is None:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def stored_print(hit: Hit, dedup: str) -> dict[str, Any]:
    """Return the parts of a hit's stored fingerprint (``scheme``, ``lang`` …); empty where there is none."""
    stored = _stored(hit, dedup, f"{dedup}.scheme")
    prefix = f"{dedup}."
    return {name.removeprefix(prefix): value for name, value in stored.items() if name.startswith(prefix)}


def _stored(hit: Hit, dedup: str, first: str) -> Mapping[str, Any]:
    """Return the fingerprint from doc values and, where the hit has a source, what they lack from there."""
    stored: Mapping[str, Any] = hit.get("fields") or _NOTHING
    if first not in stored:
        return _from_source(hit, dedup)
    return {**_from_source(hit, dedup), **stored} if "_source" in hit else stored


def _from_source(hit: Hit, dedup: str) -> Mapping[str, Any]:
    """Return the fingerprint as ``docvalue_fields`` would: flat names, every value a list."""
    stored = stored_value(hit.get("_source"), dedup)
    if not isinstance(stored, Mapping):
        return _NOTHING
    return {
        f"{dedup}.{key}": value if isinstance(value, list) else [value]
        for key, value in stored.items()
        if value is not None
    }


@dataclass(frozen=True, slots=True)
class Prints:
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

    def take(self, rows: Sequence[int]) -> "Prints":
        """Return the fingerprints of some rows."""
        index = np.asarray(rows, np.int64)
        return Prints(
            self.signatures[index],
            self.signed[index],
            self.shingles[index],
            self.languages[index],
            self.digests[index],
            self.scopes[index],
            tuple(self.keywords[row] for row in rows),
        )

    def join(self, other: "Prints") -> "Prints":
        """Return these fingerprints and then the other ones."""
        return Prints(
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
        self._names = tuple(
            f"{dedup}.{part}" for part in ("scheme", "lang", "shingles", "digest", "signature")
        )
        self._keywords = f"{dedup}.supershingles"
        self._size = -(-scheme.sketch.values * scheme.sketch.bits // 8)
        self._scopes = tuple(scopes)
        self._codes: dict[object, int] = {}

    def read(self, hits: Sequence[Hit]) -> Prints:
        """Return the fingerprints of hits; a damaged one counts as none. Cost: about 1 µs a hit."""
        count = len(hits)
        self.counts.hits += count
        blank = bytes(self._size)
        signatures: list[bytes] = []
        shingles: list[int] = []
        languages: list[str] = []
        digests: list[int] = []
        keywords: list[Sequence[str]] = []
        code, first, words = self._codes, self._names[0], self._keywords
        for hit in hits:
            stored = hit.get("fields") or _NOTHING
            if first not in stored or "_source" in hit:
                stored = _stored(hit, self._dedup, first)
            signature, length, language, digest = self._row(stored)
            signatures.append(signature or blank)
            shingles.append(length if signature else -1)
            languages.append(language)
            digests.append(code.setdefault(digest, len(code)) if digest else -1)
            keywords.append(stored.get(words, ()) if signature else ())
        found = Counter(languages)
        codes = {language: code.setdefault(language, len(code)) for language in found}
        del found[""]
        self.counts.languages.update(found)
        lengths = np.array(shingles, np.int64)
        return Prints(
            np.frombuffer(b"".join(signatures), np.uint8).reshape(count, self._size),
            lengths >= 0,
            lengths,
            np.array([codes[language] for language in languages], np.int32),
            np.array(digests, np.int32),
            self._scope_columns(hits),
            tuple(keywords),
        )

    def _row(self, stored: Mapping[str, Any]) -> tuple[bytes, int, str, tuple[str, str] | None]:
        """Return signature, shingles, language and digest; no language where there is no fingerprint."""
        scheme_name, lang_name, shingles_name, digest_name, signature_name = self._names
        try:
            scheme = stored[scheme_name][0]
            digest = stored[digest_name][0] if digest_name in stored else ""
            key = (scheme, digest) if digest else None
            if scheme != self._scheme:
                self.counts.other_schemes[scheme] += 1
                return b"", 0, "", key
            language = str(stored[lang_name][0]) if lang_name in stored else UNDETERMINED
            if signature_name not in stored:
                self.counts.unsigned += 1
                return b"", 0, language, key
            # OpenSearch leaves the padding out when it reads doc values; too much of it does no harm.
            signature = a2b_base64(stored[signature_name][0] + "==")
            shingles = int(stored[shingles_name][0])
        except (LookupError, TypeError, ValueError, Base64Error):
            return self._without(stored)
        if len(signature) != self._size or not 0 <= shingles <= _MOST:
            return self._without(stored)
        return signature, shingles, language, key

    def _without(self, stored: Mapping[str, Any]) -> tuple[bytes, int, str, None]:
        if self._names[0] in stored:
            self.counts.unreadable += 1
        else:
            self.counts.unsigned += 1
        return b"", 0, "", None

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
