"""The values that packages exchange: tokens, fingerprints, and their numpy types."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: Limits of a stored fingerprint: characters of scheme, language and digest together, supershingles,
#: characters of the signature. No scheme exceeds them.
LONGEST_DIGEST, _MOST_SUPERSHINGLES, _LONGEST_SIGNATURE = 300, 1024, 22_000
#: Stands between the digest of a text and the hash of its facts; no digest contains it.
FACTS_MARK, _FACT_BYTES = "~", 8
#: The language code of a document without tokens.
UNDETERMINED = "und"
#: The classes of words that can be facts. ``numbers``: numbers, in words, too, with their units, signs and
#: model letters, dates, weekdays, and signs that compare words (``>=``, ``≠``);
#: ``letters``: single Latin capitals and sizes, with plus, minus or # after them (XL, C++, Rh−), sides,
#: sexes and negations;
#: ``names``: capitalized words within sentences, except those before models, and the characters before
#: Chinese words for places.
WordClass = Literal["numbers", "letters", "names"]


class Token(NamedTuple):
    """A canonical token and its position in the text.

    ``start`` and ``end`` are character offsets into the original text, end exclusive.
    """

    text: str
    start: int
    end: int
    language: str


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The hashed canonical tokens of a batch of D documents, T tokens in all.

    ``hashes``: uint64 (T,), the tokens of all documents one after another; never 0.
    ``offsets``: int64 (D + 1,), document d is ``hashes[offsets[d]:offsets[d + 1]]``.
    ``languages``: D codes, the language of most tokens of the document, or ``und`` without tokens.
    ``repairs``: int32 (D,), how many look-alike letters were replaced and invisible characters deleted. Many
    of them are a sign of spam.
    """

    hashes: Uint64s
    offsets: Int64s
    languages: tuple[str, ...]
    repairs: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.languages)

    def with_languages(self, languages: Sequence[str | None], known: Iterable[str]) -> "TokenBatch":
        """Return the batch with the languages that documents with tokens declare, those that are known."""
        if not any(languages):
            return self
        labels = {code: code for code in known}
        rows = zip(self.languages, languages, strict=True)
        own = (main if main == UNDETERMINED else labels.get(code or "", main) for main, code in rows)
        return replace(self, languages=tuple(own))


@dataclass(frozen=True, slots=True, eq=False)
class PlacedTokens:
    """The canonical tokens of a text with their positions, as columns.

    ``hashes``: uint64 (T,), never 0. ``starts``, ``ends``: int64 (T,), character offsets, end exclusive.
    """

    hashes: Uint64s
    starts: Int64s
    ends: Int64s

    def __len__(self) -> int:
        return len(self.hashes)


class Sample(NamedTuple):
    """A self-test of a language: two texts, and whether their canonical tokens must be equal."""

    a: str
    b: str
    same: bool


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of a document, stored in one object field (by default ``_dedup``).

    Attributes:
        scheme: the id of the scheme.
        lang: the declared language, else that of most tokens; ``und`` if there are no tokens.
        shingles: how many shingles the text has, repeats included.
        digest: equal for equal token sequences; empty if there is no shingle at all. If the index has facts
            that never differ, their hash follows (``Qx3…~fG7…``).
        supershingles: the keywords by which candidates are found; empty without a signature, or if the
            index stores none.
        signature: the packed b-bit signature; empty if the text has too few shingles.
        seal: see ``shinglefold.model.seal``; empty if there is none.

    The stored digest begins with scheme, language and shingles (``sf3-….ru.287.Qx3…``) and ends with the
    seal. So a window of hits is compared by two fields instead of five, and digests of different schemes
    never match.
    """

    scheme: str
    lang: str
    shingles: int
    digest: str = ""
    supershingles: tuple[str, ...] = ()
    signature: bytes = b""
    seal: str = ""

    @property
    def head(self) -> str:
        """Scheme, language, shingles and digest, with dots between them."""
        return f"{self.scheme}.{self.lang}.{self.shingles}.{self.digest}"

    @property
    def stored_digest(self) -> str:
        """The digest as it is stored: the head, and the seal if there is one."""
        return f"{self.head}.{self.seal}" if self.seal else self.head

    @property
    def stored_signature(self) -> str:
        """The signature in base64, as it is stored."""
        from base64 import b64encode

        return b64encode(self.signature).decode("ascii")

    def to_field(self) -> dict[str, Any]:
        """Return the JSON object that is stored. Empty supershingles and signatures are left out."""
        field: dict[str, Any] = {
            "scheme": self.scheme,
            "lang": self.lang,
            "shingles": self.shingles,
            "digest": self.stored_digest,
        }
        if self.supershingles:
            field["supershingles"] = list(self.supershingles)
        if self.signature:
            field["signature"] = self.stored_signature
        return field

    @classmethod
    def from_field(cls, field: Mapping[str, Any]) -> "Fingerprint":
        """Read what ``to_field`` wrote, also in the form of ``docvalue_fields``, where every value is a list.

        Scheme, language and shingles are read from the digest if they are missing.

        Raises:
            InputError: a part is missing or of the wrong type.
        """
        from base64 import b64decode

        def one(name: str, default: object = None) -> Any:  # noqa: ANN401 - JSON
            value = field.get(name)
            if value is None:
                return default
            if not isinstance(value, list):
                return value
            if len(value) != 1:
                raise ValueError(f"its {name} has {len(value)} values")
            return value[0]

        try:
            words = field.get("supershingles") or ()
            if len(words) > _MOST_SUPERSHINGLES:
                raise ValueError(f"{len(words)} supershingles")
            head = split_digest(_text("digest", one("digest", "")))
            if (scheme := one("scheme", head.scheme)) == "":
                raise KeyError("scheme")
            return cls(
                scheme=_text("scheme", scheme),
                lang=_text("lang", one("lang", head.lang)),
                shingles=_count(one("shingles", head.shingles)),
                digest=head.digest,
                supershingles=_texts("supershingle", words),
                signature=b64decode(
                    pad_base64(_text("signature", one("signature", ""), _LONGEST_SIGNATURE)), validate=True
                ),
                seal=head.seal,
            )
        except (LookupError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"not a stored fingerprint ({error}); index the document again") from error


def text_digest(digest: str) -> str:
    """Return the digest of a text without the hash of its facts."""
    return digest.partition(FACTS_MARK)[0]


def facts_differ(one: str, other: str) -> bool:
    """Return whether two digests have different facts; a digest without facts differs from none."""
    here, there = one.partition(FACTS_MARK)[2], other.partition(FACTS_MARK)[2]
    return bool(here and there and here != there)


def fact_codes(digests: Sequence[object]) -> Int64s | None:
    """Return a number for the facts of each digest, 0 for none; None if no digest has facts."""
    found = [one.partition(FACTS_MARK)[2] if isinstance(one, str) else "" for one in digests]
    if not any(found):
        return None
    codes = {"": 0}
    return np.array([codes.setdefault(one, len(codes)) for one in found], np.int64)


def facts_number(digest: str) -> int:
    """Return the facts of a digest as a number of 64 bits, 0 for none.

    Raises:
        ValueError: they are not a hash.
    """
    from base64 import b64decode

    facts = digest.partition(FACTS_MARK)[2]
    if not facts:
        return 0
    raw = b64decode(pad_base64(facts), altchars=b"-_", validate=True)
    if len(raw) != _FACT_BYTES:
        raise ValueError(f"facts of {len(raw)} bytes")
    return int.from_bytes(raw, "little") or 1


class DigestParts(NamedTuple):
    """The parts of a stored digest."""

    scheme: str
    lang: str
    shingles: int
    digest: str
    seal: str = ""


def split_digest(stored: str) -> DigestParts:
    """Return the parts of a stored digest; the scheme is empty unless ``to_field`` stored it."""
    pieces = stored.split(".")
    if len(pieces) == len(DigestParts._fields) and pieces[0] and pieces[2].isdecimal():
        scheme, lang, counted, digest, seal = pieces
        return DigestParts(scheme, lang, int(counted), digest, seal)
    scheme, _, rest = stored.partition(".")
    lang, _, counted = rest.rpartition(".")[0].rpartition(".")
    if scheme and lang and counted.isdecimal():
        return DigestParts(scheme, lang, int(counted), rest.rpartition(".")[2])
    return DigestParts("", UNDETERMINED, 0, stored)


def _text(name: str, value: object, most: int = LONGEST_DIGEST) -> str:
    if not isinstance(value, str):
        raise TypeError(f"its {name} is not a string")
    if len(value) > most:
        raise ValueError(f"its {name} has {len(value)} characters")
    return value


def _texts(name: str, values: Sequence[object]) -> tuple[str, ...]:
    # Fast path for the usual case: gates read some hundred thousand a second.
    if set(map(type, values)) == {str} and max(map(len, values)) <= LONGEST_DIGEST:  # type: ignore[arg-type]
        return tuple(values)  # type: ignore[arg-type]
    return tuple(_text(name, value) for value in values)


def _count(value: Any) -> int:  # noqa: ANN401 - JSON
    count = int(value)
    if not 0 <= count < 2**63:
        raise ValueError("its number of shingles is out of range")
    return count


def pad_base64(base64: str) -> str:
    """Return base64 with the padding that OpenSearch leaves out of doc values."""
    return base64 + "=" * (-len(base64) % 4)
