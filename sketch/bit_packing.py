"""Packing: b bits of every minimum, side by side in bytes."""

from math import ceil

import numpy as np

from shinglefold.errors import ConfigError
from shinglefold.model.values import Bytes, Uint32s
from shinglefold.sketch.hash_mixing import mix32

WIDTHS = (1, 2, 4, 8, 16, 32)


def check_bits(bits: int) -> None:
    """Raise ``ConfigError`` unless a packed value may have this many bits."""
    if bits not in WIDTHS:
        raise ConfigError(f"bits {bits} is none of {', '.join(map(str, WIDTHS))}")


def packed_size(values: int, bits: int) -> int:
    """Return the bytes of a signature of so many values."""
    return ceil(values * bits / 8)


def low_bits(minima: Uint32s, bits: int) -> Uint32s:
    """Return b well mixed bits of each minimum, as values below 2^bits.

    The bits are taken after a mix: the lowest bits of an odd multiply-add depend on the lowest bits of its
    input alone, so on short documents, where few shingles hold all minima, the functions would agree or
    disagree together (with 4 shingles the estimate of strangers scatters 2.4 times as wide without the mix).

    Source: Li & König 2010, "b-bit minwise hashing"; the mix is an addition.
    """
    check_bits(bits)
    return mix32(minima) >> np.uint32(32 - bits)


def pack(values: Uint32s, bits: int) -> Bytes:
    """Pack the lowest b bits of each value, the first value lowest, the last byte filled up with zeros.

    Args:
        values: uint32 (D, K), each below 2^bits.
        bits: 1, 2, 4, 8, 16 or 32.

    Returns:
        uint8 (D, ceil(K·bits/8)).
    """
    check_bits(bits)
    if bits >= 8:
        wide = np.ascontiguousarray(values, f"<u{bits // 8}")
        return wide.view(np.uint8).copy()
    share = 8 // bits
    padded = np.zeros((len(values), packed_size(values.shape[1], bits) * share), np.uint8)
    padded[:, : values.shape[1]] = values
    packed = padded[:, ::share].copy()
    for place in range(1, share):
        packed |= padded[:, place::share] << np.uint8(place * bits)
    return packed


def unpack(packed: Bytes, bits: int, values: int) -> Uint32s:
    """Undo ``pack``.

    Args:
        packed: uint8 (D, B).
        values: K, how many values a row holds.

    Returns:
        uint32 (D, K).

    Raises:
        ConfigError: the rows are not as long as K values of b bits.
    """
    check_bits(bits)
    if packed.shape[1] != packed_size(values, bits):
        raise ConfigError(f"{packed.shape[1]} bytes are no {values} values of {bits} bits: check the scheme")
    if bits >= 8:
        return np.ascontiguousarray(packed).view(f"<u{bits // 8}").astype(np.uint32)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    split = (packed[:, :, None] >> shifts) & np.uint8(2**bits - 1)
    return split.reshape(len(packed), packed.shape[1] * (8 // bits))[:, :values].astype(np.uint32)
