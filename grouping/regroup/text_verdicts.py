"""Texts asked about pairs of a census: read by the block, each document about once, and told pair by pair."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.contracts.engine import Engine
from shinglefold.contracts.shard_failures import check_complete
from shinglefold.errors import InputError, reason_of
from shinglefold.grouping.regroup.census import Census, digest_of
from shinglefold.maintenance.reconcile import DocumentKey, ids_query, key_of
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.rerank.fold.text_verification import TextStage
from shinglefold.runtime.backoff import Backoff, retry_unavailable
from shinglefold.sketch import connected

#: What is said of a pair; unknown is what was not asked, or can't be told.
UNKNOWN, APART, ALIKE = -1, 0, 1
Said = NDArray[np.int8]
_ROW = np.dtype([("pair", "<u8"), ("said", "i1")])
#: How a file of them begins, as long as a row, so that nobody else's is taken for one.
_BEGINNING = b"sftexts1\n"


class VerdictLog:
    """Verdicts by pairs of texts: in a file whose rows are only added, so that a killed run loses none.

    Args:
        path: None keeps them in memory alone.
        job: what decides; verdicts of another job are found by none of this one.

    Cost: 9 bytes a pair, in memory and on disk.
    """

    def __init__(self, path: Path | None, job: Mapping[str, Any]) -> None:
        self._path = path
        self._key = blake2b(json.dumps(job, sort_keys=True).encode(), digest_size=16).digest()
        self._rows = np.zeros(0, _ROW)
        #: Those that are not in order yet: a job asks by many blocks, and looks them up but now and then.
        self._fresh = [np.zeros(0, _ROW) if path is None else self._read(path)]

    def pairs(self, ones: Sequence[str], others: Sequence[str]) -> Uint64s:
        """Return what names pairs of texts, given by their digests, in either order."""
        made = bytearray()
        for pair in zip(ones, others, strict=True):
            told = "\0".join(sorted(pair)).encode()
            made += blake2b(told, digest_size=8, key=self._key).digest()
        return np.frombuffer(bytes(made), "<u8").astype(np.uint64)

    def known(self, pairs: Uint64s) -> Said:
        """Return what was said of pairs."""
        said = np.full(len(pairs), UNKNOWN, np.int8)
        if self._fresh:
            whole = np.concatenate((self._rows, *self._fresh))
            self._rows, self._fresh = whole[np.argsort(whole["pair"], kind="stable")], []
        if len(self._rows):
            places = np.searchsorted(self._rows["pair"], pairs).clip(0, len(self._rows) - 1)
            same = self._rows["pair"][places] == pairs
            said[same] = self._rows["said"][places[same]]
        return said

    def keep(self, pairs: Uint64s, said: Said) -> None:
        """Keep what was said of pairs, but for what is unknown.

        Raises:
            InputError: the file can't be written.
        """
        told = said != UNKNOWN
        rows = np.zeros(int(np.count_nonzero(told)), _ROW)
        rows["pair"], rows["said"] = pairs[told], said[told]
        if not len(rows):
            return
        self._fresh.append(rows)
        if self._path is not None:
            self._write(self._path, rows.tobytes())

    def remove(self) -> None:
        """Remove the file: the job is done."""
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
        """Return the rows of a file; the last one is cut off where the process died in the middle of it."""
        try:
            with path.open("r+b") as file:
                held = file.read()
                if not held.startswith(_BEGINNING[: len(held)]):
                    raise InputError(
                        f"{path}, where what texts said is kept beside the checkpoint, holds something else: "
                        "give another checkpoint"
                    )
                whole = len(held) - len(held) % _ROW.itemsize
                file.truncate(whole)
        except FileNotFoundError:
            return np.zeros(0, _ROW)
        except OSError as error:
            raise InputError(
                f"cannot read {path}, beside the checkpoint: {reason_of(error)}; delete it"
            ) from error
        return np.frombuffer(held[len(_BEGINNING) : whole], _ROW)


#: Documents whose pairs are asked together, twice as many where these are of two such rows; shingles of
#: their texts at most, which is some 8 MB; documents read in one request.
_TILE, _SHINGLES, _AT_ONCE = 250, 1_000_000, 100


@dataclass(slots=True)
class TextVerdicts:
    """Asks the texts of documents.

    Args:
        read: told how many documents were read, so that it can slow down or break off.

    Attributes:
        asked: pairs whose texts told whether they are alike. unread: pairs of which a text is missing, too
            long, or another by now; their signatures decide.
    """

    engine: Engine
    path: str
    stage: TextStage
    backoff: Backoff
    verdicts: VerdictLog
    read: Callable[[int], None]
    asked: int = 0
    unread: int = 0

    def __call__(self, census: Census, a: Int64s, b: Int64s) -> Said:
        """Return what texts say of pairs of documents, int8 (P,).

        Raises:
            EngineError: the engine can't be asked.
            InputError: what was said can't be kept.

        Cost: a document of a group of up to 250 is read about once, one of n as often as n / 250; 5 to 40 µs
        a pair beside that. At most some 500 texts are held.
        """
        digests = [[census.digest(place) for place in side.tolist()] for side in (a, b)]
        pairs = self.verdicts.pairs(*digests)
        said = self.verdicts.known(pairs)
        open_ = np.flatnonzero(said == UNKNOWN)
        if not len(open_) or not self.stage.ready():
            return said
        open_ = open_[_order(a[open_], b[open_])]
        for begin, end in _blocks(a[open_], b[open_], census.shingles):
            rows = open_[begin:end]
            said[rows] = self._said(census, a[rows], b[rows])
            self.verdicts.keep(pairs[rows], said[rows])
        self.asked += int(np.count_nonzero(said[open_] != UNKNOWN))
        self.unread += int(np.count_nonzero(said[open_] == UNKNOWN))
        return said

    def _said(self, census: Census, a: Int64s, b: Int64s) -> Said:
        places = np.unique(np.concatenate((a, b))).tolist()
        texts = self._texts(census, places)
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        told = self.stage.decide_texts(pairs, texts)
        verdicts = {pair: ALIKE if said.alike else APART for pair, said in told.items()}
        return np.array([verdicts.get(pair, UNKNOWN) for pair in pairs], np.int8)

    def _texts(self, census: Census, places: Sequence[int]) -> dict[int, str]:
        """Return the texts of documents that are as they were read for the census."""
        by_key = dict(zip(census.keys.several(places), places, strict=True))
        named: dict[tuple[str, str | None], list[str]] = {}
        for key in by_key:
            named.setdefault((key.index, key.routing), []).append(key.id)
        texts: dict[int, str] = {}
        for (index, routing), ids in named.items():
            for begin in range(0, len(ids), _AT_ONCE):
                several = ids[begin : begin + _AT_ONCE]
                for key, source in self._sources(index, routing, several):
                    place = by_key.get(key)
                    if place is not None and digest_of(stored_parts(source, self.path)) == census.digest(
                        place
                    ):
                        texts[place] = self.stage.text(source)
                self.read(len(several))
        return texts

    def _sources(
        self, index: str, routing: str | None, ids: Sequence[str]
    ) -> Iterator[tuple[DocumentKey, Mapping[str, Any]]]:
        fields = [*self.stage.fields, f"{self.path}.digest"]
        body = {
            "query": ids_query(routing, ids),
            "size": len(ids),
            "_source": fields,
            "track_total_hits": False,
            **self.engine.can.unaltered,
        }
        answer = retry_unavailable(lambda: check_complete(self.engine.search(index, body)), self.backoff)
        for hit in answer["hits"]["hits"]:
            yield key_of(hit), hit.get("_source") or {}


def _order(a: Int64s, b: Int64s) -> Int64s:
    """Return the order of pairs in which those of a few documents stand together.

    Documents are in order by what pairs connect, and pairs by the tiles that two stretches of these make.
    """
    documents, number = np.unique(np.concatenate((a, b)), return_inverse=True)
    one, other = number[: len(a)], number[len(a) :]
    together = connected(one, other, len(documents))
    rank = np.empty(len(documents), np.int64)
    rank[np.argsort(together, kind="stable")] = np.arange(len(documents))
    low, high = np.minimum(rank[one], rank[other]), np.maximum(rank[one], rank[other])
    return np.lexsort((high, low, high // _TILE, low // _TILE))


def _blocks(a: Int64s, b: Int64s, shingles: Int64s) -> Iterator[tuple[int, int]]:
    """Yield stretches of pairs whose texts are held at once."""
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
