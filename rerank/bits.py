"""Sets of places as whole numbers: bit p stands for place p. At this size they beat arrays."""

import numpy as np
from numpy.typing import NDArray

#: Ones up to which taking them out one by one is faster than unpacking all bits.
_FEW = 16


def places(bits: int) -> list[int]:
    """Return the places of a set, in order."""
    if bits.bit_count() > _FEW:
        packed = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), np.uint8)
        many: list[int] = np.unpackbits(packed, bitorder="little").nonzero()[0].tolist()
        return many
    few = []
    while bits:
        last = bits & -bits
        few.append(last.bit_length() - 1)
        bits ^= last
    return few


def sets(rows: NDArray[np.bool_], begin: int = 0) -> list[int]:
    """Return the set of each row, bool (R, n), whose first column stands for place ``begin``."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    size, data = packed.shape[1], packed.tobytes()
    return [
        int.from_bytes(data[at : at + size], "little") << begin for at in range(0, len(rows) * size, size)
    ]
