"""The values that travel between the packages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: What a stored fingerprint may hold at most: characters of its scheme, language and digest together,
#: supershingles, characters of its signature. No scheme makes more.
LONGEST_DIGEST, _MOST_SUPERSHINGLES, _LONGEST_SIGNATURE = 300, 1024, 22_000
#: The language code of a document without a single token.
UNDETERMINED = "und"


class Token(NamedTuple):
    """A canonical token and the place it came from.

    ``start`` and ``end`` are character offsets into the text as it was given, end exclusive.
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
    ``languages``: D codes, the language most tokens of the document are of, or ``und``.
    ``repairs``: int32 (D,), look-alike letters replaced and invisible characters deleted, a spam signal.
    """

    hashes: Uint64s
    offsets: Int64s
    languages: tuple[str, ...]
    repairs: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.languages)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedTokens:
    """The canonical tokens of a text as columns: what they are, and where.

    ``hashes``: uint64 (T,), never 0. ``starts``, ``ends``: int64 (T,), characters of the text, end exclusive.
    """

    hashes: Uint64s
    starts: Int64s
    ends: Int64s

    def __len__(self) -> int:
        return len(self.hashes)


class Sample(NamedTuple):
    """A self-test of a language: two texts, and whether their canonical tokens are to be equal."""

    a: str
    b: str
    same: bool


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is stored beside a document, in one object field (``dedup`` unless told).

    ``signature`` is the packed b-bit signature, or empty where the text has too few shingles to have one;
    then ``supershingles`` is empty too, as it is where an index stores none. ``digest`` is empty where there
    is no shingle at all.

    Stored, the digest begins with scheme, language and shingles (``sf2-….ru.287.Qx3…``): a window of hits is
    then told by two fields instead of five, and no two schemes can have a digest in common. It ends with the
    ``seal`` where there is one; see ``shinglefold.model.seal``.
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
        """The stored digest without the seal."""
        return f"{self.scheme}.{self.lang}.{self.shingles}.{self.digest}"

    @property
    def stored_digest(self) -> str:
        """The digest as it is stored: all that tells the scheme, and the seal where there is one."""
        return f"{self.head}.{self.seal}" if self.seal else self.head

    @property
    def stored_signature(self) -> str:
        """The signature as it is stored, in base64."""
        from base64 import b64encode

        return b64encode(self.signature).decode("ascii")

    def to_field(self) -> dict[str, Any]:
        """Return the JSON object that is stored; the signature as base64, or left out where there is none."""
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
        """Read what ``to_field`` wrote, also as ``docvalue_fields`` return it (every value a list).

        The digest alone tells scheme, language and shingles, where these are not given themselves.

        Raises:
            InputError: a part is missing or of the wrong type.
        """
        from base64 import b64decode

        def one(name: str, otherwise: object = None) -> Any:  # noqa: ANN401 - JSON
            value = field.get(name)
            if value is None:
                return otherwise
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


class DigestParts(NamedTuple):
    """What a stored digest tells."""

    scheme: str
    lang: str
    shingles: int
    digest: str
    seal: str = ""


def split_digest(stored: str) -> DigestParts:
    """Return the parts of a stored digest; there is no scheme in one that was not stored by ``to_field``."""
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
        raise TypeError(f"its {name} is no text")
    if len(value) > most:
        raise ValueError(f"its {name} has {len(value)} characters")
    return value


def _texts(name: str, values: Sequence[object]) -> tuple[str, ...]:
    # The usual case at once: gates read some hundred thousand a second.
    if set(map(type, values)) == {str} and max(map(len, values)) <= LONGEST_DIGEST:  # type: ignore[arg-type]
        return tuple(values)  # type: ignore[arg-type]
    return tuple(_text(name, value) for value in values)


def _count(value: Any) -> int:  # noqa: ANN401 - JSON
    count = int(value)
    if not 0 <= count < 2**63:
        raise ValueError("its number of shingles is out of range")
    return count


def pad_base64(base64: str) -> str:
    """Return base64 with the padding OpenSearch leaves out when it reads doc values."""
    return base64 + "=" * (-len(base64) % 4)
