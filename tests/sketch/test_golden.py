"""Frozen keywords and signatures: a changed byte would part every stored index from new documents.

Where a change is meant, ``ALGORITHM`` in the scheme counts up and the files are frozen again:

    SHINGLEFOLD_FREEZE=1 python -m pytest tests/sketch/test_golden.py
"""

import json
import os
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from support.sketches import batch

from shinglefold.model.scheme import ALGORITHM, PRESETS
from shinglefold.sketch.sketcher import Sketcher, token_digests

FOLDER = Path(__file__).parent / "golden"
FREEZE = bool(os.environ.get("SHINGLEFOLD_FREEZE"))


def numbers(seed, count):
    """A generator of its own, so that the input never changes with a library."""
    state, values = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(state ^ state >> 33)
    return values


def documents():
    page = numbers(1, 500)
    edited = [*page[:100], *numbers(2, 10), *page[110:]]
    return {
        "empty": [],
        "one token": numbers(3, 1),
        "four tokens": numbers(3, 4),
        "one token a hundred times": numbers(3, 1) * 100,
        "thirty tokens": numbers(4, 30),
        "page": page,
        "page with ten tokens replaced": edited,
        "page twice": page * 2,
        "page backwards": page[::-1],
        "smallest and largest": [1, 2**64 - 1, 2, 2**63, 2**32, 2**32 - 1, 3, 5, 8],
    }


def sketched(name):
    options = PRESETS[name].sketch
    texts = documents()
    hashes, offsets = batch([np.array(tokens, np.uint64) for tokens in texts.values()])
    tool = Sketcher(options)
    found = tool.sketch(hashes, offsets)
    rows = zip(
        texts,
        found.shingles.tolist(),
        token_digests(hashes, offsets),
        tool.keywords(found),
        tool.signatures(found),
        found.valid.tolist(),
        strict=True,
    )
    return {
        "algorithm": ALGORITHM,
        "sketch": asdict(options),
        "documents": {
            text: {
                "shingles": shingles,
                "digest": digest,
                "keywords": list(keywords),
                "signature": b64encode(signature.tobytes()).decode() if valid else "",
            }
            for text, shingles, digest, keywords, signature, valid in rows
        },
    }


@pytest.mark.parametrize("name", ["default", "compact", "once", "classic", "fetterly"])
def test_keywords_and_signatures_are_the_frozen_ones(name):
    path = FOLDER / f"{name}.json"
    found = sketched(name)
    if FREEZE:
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        pytest.skip(f"{path.name} frozen again")
    assert found == json.loads(path.read_text("utf-8"))


def mixed(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def drawn(seed, count):
    return [mixed((seed + 0x9E3779B97F4A7C15 * step) % 2**64) for step in range(1, count + 1)]


def written(number, count):
    return "".join(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[number >> 6 * place & 63]
        for place in reversed(range(count))
    )


def defined(tokens, options):
    """Keywords and signature in whole numbers, step by step: what the format is, without numpy."""
    shingles = []
    for window in zip(*(tokens[place:] for place in range(options.word_width)), strict=False):
        chain = window[0]
        for token in window[1:]:
            chain = ((chain ^ chain >> 32) * 0xD6E8FEB86659FD93 + token) % 2**64
        shingles.append(mixed(chain))
    if options.counted:
        before = [shingles[:place].count(shingle) for place, shingle in enumerate(shingles)]
        shingles = [
            mixed((shingle + 0xD6E8FEB86659FD93 * times) % 2**64) if times else shingle
            for shingle, times in zip(shingles, before, strict=True)
        ]
    permuted = [
        [((both | 1) * (shingle >> 32 * (place % 2)) + (both >> 32)) % 2**32 for shingle in shingles]
        for place, both in enumerate(drawn(options.seed, options.values // (1 + options.both_ends)))
    ]
    minima = [min(values) for values in permuted]
    if options.both_ends:
        minima += [2**32 - 1 - max(values) for values in permuted]
    keywords = []
    for slot, first in enumerate(drawn(0, options.groups)):
        state = first
        for value in minima[slot * options.group_size : (slot + 1) * options.group_size]:
            state = (state ^ value) * 0xD6E8FEB86659FD93 % 2**64
            state ^= state >> 32
        keywords.append(written(slot, 1) + written(mixed(state), 5))
    bits = [((m ^ m >> 16) * 0x9E3779B1 % 2**32) >> (32 - options.bits) for m in minima]
    packed = sum(value << options.bits * place for place, value in enumerate(bits))
    return keywords, packed.to_bytes(-(-options.values * options.bits // 8), "little")


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", ["default", "compact", "once", "classic", "fetterly"])
@pytest.mark.parametrize("text", ["thirty tokens", "page", "page twice", "smallest and largest"])
def test_the_frozen_bytes_follow_from_the_definition(name, text):
    keywords, signature = defined(documents()[text], PRESETS[name].sketch)
    frozen = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["documents"][text]
    assert frozen["keywords"] == keywords
    assert frozen["signature"] == b64encode(signature).decode()
