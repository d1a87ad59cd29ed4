"""Every stage between a file of documents and a file of fingerprints, on one core, warm."""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench import corpora
from bench.clock import in_turns
from bench.speed.samples import Sample, samples
from bench.table import Row
from shinglefold.canon import strip_html
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.fingerprinter import fields_json
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.registry import make_scheme
from shinglefold.sketch import Sketcher
from shinglefold.sketch.minhash import minima
from shinglefold.sketch.shingles import batch_shingles, count_repeats

ROUNDS = 7


def measure() -> list[Row]:
    """Return µs of CPU a document for each stage, in numpy and compiled; of HTML a kilobyte."""
    rows = [row for sample in samples() for row in _stages(sample)]
    return [*rows, *_markup()]


def _stages(sample: Sample) -> list[Row]:
    texts = sample.texts
    lines = [msgspec.json.encode({"id": str(number), "body": text}) for number, text in enumerate(texts)]
    decode = msgspec.json.Decoder().decode
    assert [decode(line)["body"] for line in lines] == list(texts)
    with TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], object]] = {"parse: JSON": lambda: [decode(line) for line in lines]}
        for kind in ("numpy", "compiled"):
            own = Fingerprinter(make_scheme())
            assert kind == "numpy" or own.compile(), "the extra fast is not installed"
            ways |= _kernel(kind, own, texts)
        made = [
            line[:-1] + b',"dedup":' + one + b"}\n"
            for line, one in zip(lines, own.fingerprint_json(texts), strict=True)
        ]
        ways["write"] = lambda: _written(Path(folder) / "out", made)
        least = in_turns(ways, ROUNDS)
    share = 1e6 / len(texts)
    return [Row(stage, value * share, "µs / document", sample.name) for stage, value in least.items()]


def _kernel(kind: str, own: Fingerprinter, texts: Sequence[str]) -> dict[str, Callable[[], object]]:
    """Return the stages of the kernel, each on what the one before made."""
    batch = own.canonicalizer.hash_batch(texts)
    sketcher = own.sketcher
    width = own.scheme.sketch.char_width if batch.languages[0] == "zh" else own.scheme.sketch.word_width
    runs = _runs(batch.offsets, sketcher.block)
    parts = [
        (batch.hashes[batch.offsets[a] : batch.offsets[b]], batch.offsets[a : b + 1] - batch.offsets[a])
        for a, b in runs
    ]
    sketches = sketcher.sketch(batch.hashes, batch.offsets, width)
    assert own.fingerprint_json(texts) == fields_json(own.scheme.id, sketcher, batch, sketches)
    return {
        f"canon: text → token hashes, {kind}": lambda: own.canonicalizer.hash_batch(texts),
        **(_by_numpy(sketcher, parts, width) if kind == "numpy" else {}),
        f"sketch: all of it, {kind}": lambda: sketcher.sketch(batch.hashes, batch.offsets, width),
        f"signature, {kind}": lambda: sketcher.signatures(sketches),
        f"supershingles, {kind}": lambda: sketcher.supershingles(sketches),
        f"digest, {kind}": lambda: sketcher.digests(batch.hashes, batch.offsets),
        f"JSON of all of it, {kind}": lambda: fields_json(own.scheme.id, sketcher, batch, sketches),
        f"text → fingerprint as JSON, {kind}": lambda: own.fingerprint_json(texts),
    }


def _by_numpy(
    sketcher: Sketcher, parts: Sequence[tuple[Uint64s, Int64s]], width: int
) -> dict[str, Callable[[], object]]:
    """Return the steps of a sketch; compiled code takes each document through all of them at once."""
    shingled = [(batch_shingles(hashes, offsets, width), offsets) for hashes, offsets in parts]
    return {
        "sketch: shingles, numpy": lambda: [batch_shingles(*part, width) for part in parts],
        "sketch: repeats, numpy": lambda: [count_repeats(s.copy(), o, width) for s, o in shingled],
        "sketch: minima and maxima, numpy": lambda: [
            minima(s, o[:-1], sketcher.functions, both_ends=True) for s, o in shingled
        ],
    }


def _runs(offsets: Int64s, block: int) -> list[tuple[int, int]]:
    """Return the documents of blocks as the sketcher cuts them, none of which may be empty here."""
    cuts = [0]
    for number in range(1, len(offsets)):
        if offsets[number] - offsets[cuts[-1]] > block:
            cuts.append(number - 1)
    return list(pairwise([*cuts, len(offsets) - 1]))


def _written(path: Path, pieces: Sequence[bytes]) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, b"".join(pieces))
    os.close(file)


def _markup() -> list[Row]:
    """Measure HTML beside the parser alone, and texts that have none."""
    from selectolax.lexbor import LexborHTMLParser

    if not corpora.available("libreoffice-ru"):
        return [Row("HTML: libreoffice-ru is not at hand (SHINGLEFOLD_DATA)", 0, "measured")]
    pages = [page["body"] for page in corpora.pages("libreoffice-ru")[:600]]
    texts = list(map(strip_html, pages))
    assert all("<" not in text[:20] for text in texts)
    least = in_turns(
        {
            "HTML → text": lambda: [strip_html(page) for page in pages],
            "selectolax alone: parse and text": lambda: [_alone(LexborHTMLParser, page) for page in pages],
            "HTML → text, of texts without markup": lambda: [strip_html(text) for text in texts],
        },
        ROUNDS,
    )
    sizes = {
        name: sum(len(page.encode()) for page in (texts if "without" in name else pages)) for name in least
    }
    note = "libreoffice-ru, 600 pages"
    return [Row(name, value * 1e6 / sizes[name] * 1024, "µs / kB", note) for name, value in least.items()]


def _alone(parser: Callable[[str], object], page: str) -> str:
    root = parser(page).root  # type: ignore[attr-defined]
    return root.text(separator="") if root is not None else ""
