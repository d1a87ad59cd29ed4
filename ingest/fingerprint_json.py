"""Write keywords and signatures as JSON in one compiled pass over the min-hashes."""

from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Bytes, Uint64s
from shinglefold.runtime.optional_imports import compile_function
from shinglefold.sketch.b_bit_minhash import packed_size
from shinglefold.sketch.minhash import ALPHABET, HASHED, letters, slot_characters
from shinglefold.sketch.shingles import FACTOR, MIX32_FACTOR, MIX_FACTORS, stream
from shinglefold.sketch.sketcher import Sketcher, Sketches

_WORDS, _SIGNATURE, _END = b',"supershingles":[', b'],"signature":"', b'"}'
#: Two quotes and the comma after a keyword.
_QUOTES = 3
_STANDARD = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_URL_SAFE = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
_FACTOR = FACTOR
_M1, _M2 = map(np.uint64, MIX_FACTORS)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_MIX32 = np.uint32(MIX32_FACTOR)
_S16 = np.uint32(16)
_SEXTET, _BYTE = np.uint64(63), np.uint32(255)


class JsonTemplate(NamedTuple):
    """The last bytes of the JSON of every fingerprint of a scheme, and the offsets to fill in.

    ``blank``: the constant bytes. ``words``: offset of the first keyword's letters; ``step``: distance to the
    next keyword. ``signature``: offset of the signature. ``starts``: initial hash states, one per keyword.
    """

    blank: Bytes
    words: int
    step: int
    signature: int
    starts: Uint64s


@lru_cache(8)
def json_template(options: SketchOptions) -> JsonTemplate:
    """Return the template for the options."""
    named = letters(np.zeros((1, options.groups), np.uint64))[0]
    step = named.shape[1] + _QUOTES
    listed = b",".join(b'"%b"' % word.tobytes() for word in named)
    empty = b64encode(bytes(packed_size(options.values, options.bits)))
    blank = _WORDS + listed + _SIGNATURE + empty + _END
    return JsonTemplate(
        np.frombuffer(blank, np.uint8),
        len(_WORDS) + 1 + slot_characters(options.groups),
        step,
        len(_WORDS) + len(listed) + len(_SIGNATURE),
        stream(0, options.groups),
    )


def compiled_sketch_json(sketcher: Sketcher, sketches: Sketches) -> Iterator[bytes]:
    """Yield the same bytes as ``sketch_json``.

    Cost: about 0.5 µs per document with 21 keywords and 336 values.
    """
    options = sketcher.options
    template = json_template(options)
    rows = np.empty((int(np.count_nonzero(sketches.valid)), len(template.blank)), np.uint8)
    rows[:] = template.blank
    _write(sketches.minima, sketches.valid, (options.group_size, options.bits), tuple(template[1:]), rows)
    joined, size = rows.tobytes(), len(template.blank)
    for start in range(0, len(joined), size):
        yield joined[start : start + size]


@compile_function
def _write(minima, valid, sizes, places, rows):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901, PLR0912
    group_size, bits = sizes
    words, step, signature, starts = places
    values = minima.shape[1]
    size = (values * bits + 7) // 8
    lowest, packed = np.empty(values, np.uint32), np.zeros(size + 2, np.uint8)
    right = np.uint32(32 - bits)
    states = np.empty_like(starts)
    row = 0
    for document in range(len(valid)):
        if not valid[document]:
            continue
        out, own = rows[row], minima[document]
        row += 1
        # The inner loop runs over groups, so that it compiles to vector instructions.
        # By numba, a slice takes two seconds to compile.
        for group in range(len(starts)):
            states[group] = starts[group]
        for place in range(group_size):
            for group in range(len(starts)):
                state = (states[group] ^ np.uint64(own[group * group_size + place])) * _FACTOR
                states[group] = state ^ (state >> _S32)
        for group in range(len(starts)):
            state = states[group]
            state = (state ^ (state >> _S30)) * _M1
            state = (state ^ (state >> _S27)) * _M2
            states[group] = state ^ (state >> _S31)
        for group in range(len(starts)):
            state = states[group]
            at = words + group * step
            for digit in range(HASHED):
                out[at + digit] = _URL_SAFE[(state >> np.uint64(6 * (HASHED - 1 - digit))) & _SEXTET]
        for place in range(values):
            value = own[place]
            lowest[place] = np.uint32((value ^ (value >> _S16)) * _MIX32) >> right
        if bits < 8:
            share = 8 // bits
            for byte in range(size):
                joined = np.uint32(0)
                for place in range(share):
                    if byte * share + place < values:
                        joined |= lowest[byte * share + place] << np.uint32(place * bits)
                packed[byte] = np.uint8(joined)
        else:
            wide = bits // 8
            for place in range(values):
                for byte in range(wide):
                    packed[place * wide + byte] = np.uint8(lowest[place] >> np.uint32(8 * byte) & _BYTE)
        at = signature
        for byte in range(0, size, 3):
            three = (
                (np.uint32(packed[byte]) << np.uint32(16))
                | (np.uint32(packed[byte + 1]) << np.uint32(8))
                | np.uint32(packed[byte + 2])
            )
            # Padding is part of the template: write only the digits that encode signature bytes.
            for digit in range(min(4, size - byte + 1)):
                out[at + digit] = _STANDARD[(three >> np.uint32(18 - 6 * digit)) & np.uint32(63)]
            at += 4
