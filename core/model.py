"""The values that travel between the packages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

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


class Sample(NamedTuple):
    """A self-test of a language: two texts, and whether their canonical tokens are to be equal."""

    a: str
    b: str
    same: bool


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is stored beside a document, in one object field (``dedup`` unless told).

    ``signature`` is the packed b-bit signature, or empty where the text has too few shingles to have one;
    then ``supershingles`` is empty too. ``digest`` is empty where there is no shingle at all.
    """

    scheme: str
    lang: str
    shingles: int
    digest: str = ""
    supershingles: tuple[str, ...] = ()
    signature: bytes = b""

    def to_field(self) -> dict[str, Any]:
        """Return the JSON object that is stored; the signature as base64, empty parts left out."""
        from base64 import b64encode

        field: dict[str, Any] = {"scheme": self.scheme, "lang": self.lang, "shingles": self.shingles}
        if self.digest:
            field["digest"] = self.digest
        if self.signature:
            field["supershingles"] = list(self.supershingles)
            field["signature"] = b64encode(self.signature).decode("ascii")
        return field

    @classmethod
    def from_field(cls, field: Mapping[str, Any]) -> "Fingerprint":
        """Read what ``to_field`` wrote, also as ``docvalue_fields`` return it (every value a list).

        Raises:
            InputError: a part is missing or of the wrong type.
        """
        from base64 import b64decode

        def one(name: str, otherwise: object = None) -> Any:  # noqa: ANN401 - JSON
            value = field.get(name)
            if value is None:
                return otherwise
            return value[0] if isinstance(value, list) else value

        try:
            return cls(
                scheme=str(field["scheme"][0] if isinstance(field["scheme"], list) else field["scheme"]),
                lang=str(one("lang", UNDETERMINED)),
                shingles=int(one("shingles", 0)),
                digest=str(one("digest", "")),
                supershingles=tuple(field.get("supershingles") or ()),
                signature=b64decode(_padded(one("signature", "")), validate=True),
            )
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise InputError(f"not a stored fingerprint ({error}); index the document again") from error


def _padded(base64: str) -> str:
    """Return base64 with the padding OpenSearch leaves out when it reads doc values."""
    return base64 + "=" * (-len(base64) % 4)
