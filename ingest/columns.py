"""Documents as columns that grow: few bytes of each in memory, what they say in a file without a name."""

import tempfile
from array import array

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.fingerprint import Beside
from shinglefold.model import Bytes, Int64s, Uint64s
from shinglefold.sketch import Texts, Words

_BUFFER = 1 << 20


class Columns:
    """The fingerprints of documents, in the order added.

    Cost: some 600 bytes a document in memory, most of them supershingles; its words are in a temporary file
    (8 bytes a word), which the system reads back as it is needed.
    """

    def __init__(self) -> None:
        self.digests: list[str] = []
        self._supershingles, self._signatures, self._signed = bytearray(), bytearray(), bytearray()
        self._shingles = array("q")
        self._written, self._canonical = _Spilled(), _Spilled()

    def __len__(self) -> int:
        return len(self.digests)

    def add(self, found: Beside) -> None:
        """Add a document."""
        made = found.made
        self.digests.append(made.digest)
        self._shingles.append(made.shingles)
        self._signed.append(bool(made.signature))
        self._signatures += made.signature
        self._supershingles += found.supershingles
        self._written.append(found.written)
        self._canonical.append(found.canonical)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which documents have a signature, bool (D,)."""
        return np.frombuffer(bytes(self._signed), np.bool_)

    @property
    def shingles(self) -> Int64s:
        """How many shingles they have, int64 (D,)."""
        return np.array(self._shingles, np.int64)

    @property
    def supershingles(self) -> Uint64s:
        """Those of all values, uint64 (D, K // N)."""
        return np.frombuffer(self._supershingles, np.uint64).reshape(len(self), -1)

    def signatures(self, size: int) -> Bytes:
        """Return the signatures of so many bytes, uint8 (D, size); zeros where there is none."""
        rows = np.zeros((len(self), size), np.uint8)
        rows[self.valid] = np.frombuffer(self._signatures, np.uint8).reshape(-1, size)
        return rows

    def texts(self) -> Texts:
        """Return what the documents say."""
        return Texts(self._written.words(), self._canonical.words())


class _Spilled:
    """Words of documents in a file that is gone with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 - as long as this
        self._sizes = array("q", [0])

    def append(self, words: bytes) -> None:
        self._file.write(words)
        self._sizes.append(len(words) // 4)

    def words(self) -> Words:
        self._file.flush()
        offsets = np.cumsum(np.array(self._sizes, np.int64))
        if not offsets[-1]:
            return Words(np.zeros(0, np.uint32), offsets)
        # As a plain array: slices of the other kind are dear.
        return Words(np.asarray(np.memmap(self._file, np.uint32, "r")), offsets)
