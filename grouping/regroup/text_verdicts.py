"""Decide about pairs of a census by their texts, and keep the verdicts.

Texts are read by the block, each document about once. Verdicts are kept in memory and in a file next to
the checkpoint, so that no pair is decided twice.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.contracts.engine import Engine
from shinglefold.errors import InputError, reason_of
from shinglefold.grouping.regroup.census import Census, digest_of
from shinglefold.maintenance.guarded_updates import read_documents
from shinglefold.maintenance.reconcile import key_of
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.rerank.fold.text_verification import TextStage
from shinglefold.runtime.backoff import Backoff
from shinglefold.sketch.b_bit_minhash import Floats
from shinglefold.sketch.clustering import connected_components

#: The verdict on a pair; ``UNKNOWN`` if the texts were not compared, or can't be.
UNKNOWN, APART, ALIKE = -1, 0, 1
Verdicts = NDArray[np.int8]
_ROW = np.dtype([("pair", "<u8"), ("said", "i1")])
#: The first bytes of a file of verdicts, as long as a row.
_BEGINNING = b"sftexts1\n"


class VerdictLog:
    """Verdicts by pairs of texts, in a file that is only appended to, so that a killed run loses none.

    Args:
        path: None keeps them in memory only.
        job: the job that decides; it does not find the verdicts of other jobs.

    Cost: 9 bytes a pair, in memory and on disk.
    """

    def __init__(self, path: Path | None, job: Mapping[str, Any]) -> None:
        self._path = path
        self._key = blake2b(json.dumps(job, sort_keys=True).encode(), digest_size=16).digest()
        self._rows = np.zeros(0, _ROW)
        #: Rows that are not sorted yet: a job adds many blocks between two lookups.
        self._fresh = [np.zeros(0, _ROW) if path is None else self._read(path)]

    def pairs(self, ones: Sequence[str], others: Sequence[str]) -> Uint64s:
        """Return the ids of pairs of texts, given by their digests in either order."""
        ids = bytearray()
        for pair in zip(ones, others, strict=True):
            ids += blake2b("\0".join(sorted(pair)).encode(), digest_size=8, key=self._key).digest()
        return np.frombuffer(bytes(ids), "<u8").astype(np.uint64)

    def verdicts_on(self, pairs: Uint64s) -> Verdicts:
        """Return the verdicts on pairs."""
        verdicts = np.full(len(pairs), UNKNOWN, np.int8)
        if self._fresh:
            whole = np.concatenate((self._rows, *self._fresh))
            self._rows, self._fresh = whole[np.argsort(whole["pair"], kind="stable")], []
        if len(self._rows):
            places = np.searchsorted(self._rows["pair"], pairs).clip(0, len(self._rows) - 1)
            same = self._rows["pair"][places] == pairs
            verdicts[same] = self._rows["said"][places[same]]
        return verdicts

    def keep(self, pairs: Uint64s, verdicts: Verdicts) -> None:
        """Keep the verdicts on pairs that are not ``UNKNOWN``."""
        decided = verdicts != UNKNOWN
        rows = np.zeros(int(np.count_nonzero(decided)), _ROW)
        rows["pair"], rows["said"] = pairs[decided], verdicts[decided]
        if not len(rows):
            return
        self._fresh.append(rows)
        if self._path is not None:
            self._write(self._path, rows.tobytes())

    def remove(self) -> None:
        """Remove the file when the job is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    @staticmethod
    def _write(path: Path, rows: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(rows if file.tell() else _BEGINNING + rows)
        except OSError as error:
            raise InputError(
                f"cannot write {path}, beside the checkpoint: {reason_of(error)}; give another path"
            ) from error

    @staticmethod
    def _read(path: Path) -> NDArray[np.void]:
        """Return the rows of a file; cut off the last one if it is incomplete after a crash."""
        try:
            with path.open("r+b") as file:
                content = file.read()
                if not content.startswith(_BEGINNING[: len(content)]):
                    raise InputError(
                        f"{path}, where verdicts of texts are kept beside the checkpoint, holds something "
                        "else: give another checkpoint"
                    )
                whole = len(content) - len(content) % _ROW.itemsize
                file.truncate(whole)
        except FileNotFoundError:
            return np.zeros(0, _ROW)
        except OSError as error:
            raise InputError(
                f"cannot read {path}, beside the checkpoint: {reason_of(error)}; delete it"
            ) from error
        return np.frombuffer(content[len(_BEGINNING) : whole], _ROW)


#: The number of documents of a tile: pairs within a tile, or between two, are decided together.
_TILE = 250
#: The most shingles of the texts in memory at once: some 8 MB.
_SHINGLES = 1_000_000
#: The most documents read in one request.
_AT_ONCE = 100


@dataclass(slots=True)
class TextVerdicts:
    """Decides about pairs of documents by their texts.

    Args:
        texts_read: called with the number of documents that were read; may wait, or raise to end the run.

    Attributes:
        decided: how many pairs the texts decided.
        unread: of how many pairs a text is missing, too long or changed, so that their signatures decide.
    """

    engine: Engine
    path: str
    stage: TextStage
    backoff: Backoff
    log: VerdictLog
    texts_read: Callable[[int], None]
    decided: int = 0
    unread: int = 0

    def __call__(self, census: Census, a: Int64s, b: Int64s, resemblance: Floats) -> Verdicts:
        """Return the verdicts of texts on pairs of documents with some resemblance, int8 (P,).

        Cost: a document of a group of up to 250 is read about once, one of n documents n / 250 times. In
        addition 5 to 40 µs a pair. At most some 500 texts are in memory.
        """
        digests = [[census.digest(place) for place in side.tolist()] for side in (a, b)]
        pairs = self.log.pairs(*digests)
        verdicts = self.log.verdicts_on(pairs)
        open_ = np.flatnonzero(verdicts == UNKNOWN)
        if not len(open_) or not self.stage.ready():
            return verdicts
        open_ = open_[_order(a[open_], b[open_])]
        for begin, end in _blocks(a[open_], b[open_], census.shingles):
            rows = open_[begin:end]
            verdicts[rows] = self._decide(census, a[rows], b[rows], resemblance[rows])
            self.log.keep(pairs[rows], verdicts[rows])
        decided = int(np.count_nonzero(verdicts[open_] != UNKNOWN))
        self.decided += decided
        self.unread += len(open_) - decided
        return verdicts

    def _decide(self, census: Census, a: Int64s, b: Int64s, resemblance: Floats) -> Verdicts:
        places = np.unique(np.concatenate((a, b))).tolist()
        texts = self._texts(census, places)
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        decided = self.stage.decide_texts(pairs, texts, self.stage.as_bags(pairs, resemblance.tolist()))
        verdicts = {pair: ALIKE if verdict.alike else APART for pair, verdict in decided.items()}
        return np.array([verdicts.get(pair, UNKNOWN) for pair in pairs], np.int8)

    def _texts(self, census: Census, places: Sequence[int]) -> dict[int, str]:
        """Return the texts of documents that have not changed since the census read them."""
        by_key = dict(zip(census.keys.several(places), places, strict=True))
        wanted = {"_source": [*self.stage.sources, f"{self.path}.digest"]}
        texts: dict[int, str] = {}
        for hits in read_documents(self.engine, by_key, self.backoff, _AT_ONCE, wanted):
            for hit in hits:
                place, source = by_key.get(key_of(hit)), hit.get("_source") or {}
                if place is not None and digest_of(stored_parts(source, self.path)) == census.digest(place):
                    texts[place] = self.stage.text(source)
            self.texts_read(len(hits))
        return texts


def _order(a: Int64s, b: Int64s) -> Int64s:
    """Return an order of pairs in which the pairs of few documents are consecutive.

    Connected documents are consecutive, and so are the pairs of two tiles of documents.
    """
    documents, number = np.unique(np.concatenate((a, b)), return_inverse=True)
    one, other = number[: len(a)], number[len(a) :]
    together = connected_components(one, other, len(documents))
    rank = np.empty(len(documents), np.int64)
    rank[np.argsort(together, kind="stable")] = np.arange(len(documents))
    low, high = np.minimum(rank[one], rank[other]), np.maximum(rank[one], rank[other])
    return np.lexsort((high, low, high // _TILE, low // _TILE))


def _blocks(a: Int64s, b: Int64s, shingles: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges of pairs whose texts are in memory at once."""
    seen: set[int] = set()
    begin = room = 0
    for at, pair in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        fresh = {*pair} - seen
        room += sum(max(0, int(shingles[place])) for place in fresh)
        seen |= fresh
        if len(seen) >= 2 * _TILE or room >= _SHINGLES:
            yield begin, at + 1
            begin, room = at + 1, 0
            seen.clear()
    if begin < len(a):
        yield begin, len(a)
