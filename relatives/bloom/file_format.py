"""The file format of filters: one memory-mapped file each, with checksums over every byte."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from shinglefold.errors import InputError
from shinglefold.runtime.durable_files import atomic_write

Array = NDArray[np.unsignedinteger[Any]]
_MAGIC = b"sfbloom1"
#: Arrays begin at a multiple of this many bytes, so that they can be memory-mapped.
_PAGE = 4096
_HEAD = np.dtype([("magic", "S8"), ("length", "<u8"), ("checksum", "<u8")])


@dataclass(slots=True)
class Stored:
    """The memory-mapped file of a filter. ``header`` is verified; ``check`` verifies an array."""

    path: Path
    header: Mapping[str, Any]
    arrays: list[Array]
    _checked: set[int] = field(default_factory=set)

    def check(self, number: int) -> None:
        """Verify the checksum of an array, unless it is verified already.

        Raises:
            InputError: the file is damaged.

        Cost: reads the array once, at several GB/s from memory.
        """
        # Arrays added later exist in memory only.
        if number in self._checked or number >= len(self.header["checksums"]):
            return
        if xxh3_64_intdigest(self.arrays[number].data) != self.header["checksums"][number]:
            raise damage_error(self.path, f"array {number} does not have its checksum")
        self._checked.add(number)


def save(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Sequence[Array]) -> None:
    """Write a filter to a file, atomically.

    Args:
        header: JSON values.
        arrays: unsigned, of the same type and length.
    """
    complete = {
        **header,
        "type": arrays[0].dtype.newbyteorder("<").str if arrays else "<u8",
        "length": len(arrays[0]) if arrays else 0,
        "checksums": [xxh3_64_intdigest(np.ascontiguousarray(array).data) for array in arrays],
    }
    body = json.dumps(complete).encode()
    head = np.array([(_MAGIC, len(body), xxh3_64_intdigest(body))], _HEAD).tobytes()
    with atomic_write(Path(path), "xb") as file:
        file.write((head + body).ljust(_begin(len(body)), b"\0"))
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)


def load(path: str | os.PathLike[str], kind: str) -> Stored:
    """Memory-map the file of a filter, read-only.

    Raises:
        InputError: the file can't be read, is damaged, or is a filter of another kind.
    """
    target = Path(path)
    try:
        mapped = np.memmap(target, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read a filter from {target}: {error}") from error
    header = _header(target, mapped)
    if header["kind"] != kind:
        raise InputError(f"{target} holds a {header['kind']} filter, not a {kind} one")
    return Stored(target, header, _arrays(target, mapped, header))


def damage_error(path: Path, how: str) -> InputError:
    """Return the error for a damaged file."""
    return InputError(f"the filter in {path} is damaged: {how}. Restore it from a copy, or make it again")


def _begin(length: int) -> int:
    """Return the start of the arrays for a header of this length."""
    return -(-(_HEAD.itemsize + length) // _PAGE) * _PAGE


def _header(path: Path, mapped: NDArray[np.uint8]) -> dict[str, Any]:
    if len(mapped) < _HEAD.itemsize:
        raise damage_error(path, "it is too short")
    head = mapped[: _HEAD.itemsize].view(_HEAD)[0]
    if head["magic"] != _MAGIC:
        raise InputError(f"{path} is not a filter of shinglefold, or is damaged; make it again")
    length = int(head["length"])
    begin = _begin(length)
    body = mapped[_HEAD.itemsize : _HEAD.itemsize + length].tobytes()
    if xxh3_64_intdigest(body) != int(head["checksum"]) or mapped[_HEAD.itemsize + length : begin].any():
        raise damage_error(path, "its header does not have its checksum")
    header: dict[str, Any] = json.loads(body)
    return header


def _arrays(path: Path, mapped: NDArray[np.uint8], header: Mapping[str, Any]) -> list[Array]:
    kind, count = np.dtype(header["type"]), len(header["checksums"])
    size = header["length"] * kind.itemsize
    begin = _begin(int(mapped[: _HEAD.itemsize].view(_HEAD)[0]["length"]))
    if len(mapped) != begin + size * count:
        raise damage_error(path, f"it has {len(mapped):,} bytes instead of {begin + size * count:,}")
    return [mapped[begin + size * at : begin + size * (at + 1)].view(kind) for at in range(count)]
