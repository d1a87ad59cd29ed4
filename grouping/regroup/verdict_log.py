"""What texts said of pairs, kept in memory and beside the checkpoint, so that no pair is asked twice."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError, reason_of
from shinglefold.model.values import Uint64s

#: What is said of a pair; unknown is what was not asked, or can't be told.
UNKNOWN, APART, ALIKE = -1, 0, 1
Said = NDArray[np.int8]
_ROW = np.dtype([("pair", "<u8"), ("said", "i1")])
#: How a file of them begins, as long as a row, so that nobody else's is taken for one.
_BEGINNING = b"sftexts1\n"


class Verdicts:
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
