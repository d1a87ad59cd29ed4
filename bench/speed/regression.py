"""``python -m bench.speed.regression [--record]``: whether something that is fast today became slower.

Each way is held against plain numpy of the same kinds of work (gathering, multiplying, sorting, minima of
stretches) in the same run, in turns, by processor time. The best round of each counts: a machine that others
use, too, is slow now and then, never fast. What loses at first is given more rounds before it is told. The
ratios differ between processors, so that each kind has a record of its own; one without is told.
"""

import argparse
import atexit
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench import corpora
from bench.clock import processor_time
from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.ingest import Fingerprinter
from shinglefold.offline.sign.signer import Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import ByteRange
from shinglefold.registry import make_scheme

RECORD = Path(__file__).with_name("ratios.json")
#: A ratio that is larger by this factor fails.
LOSS = 1.25
_ROUNDS, _SECONDS = 25, 40.0
#: Values that the reference works on at a time, 128 kB of them, and how often.
_VALUES, _TIMES = 1 << 14, 32
Work = Callable[[], object]


def main() -> int:
    """Compare with the record and tell what is lost; 1 where something is."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.regression", description=__doc__)
    parser.add_argument("--record", action="store_true", help="note today's ratios instead")
    chosen = parser.parse_args()
    known: dict[str, dict[str, float]] = json.loads(RECORD.read_text("utf-8"))
    own = processor()
    record = known.get(own, {})
    compared, rounds = ({}, 4 * _ROUNDS) if chosen.record else (record, _ROUNDS)
    ratios = measured(every_way(), reference(), compared, rounds)
    for name, ratio in ratios.items():
        sys.stdout.write(f"{name}: {ratio:.3f} of the reference, on record {record.get(name, 0):.3f}\n")
    if chosen.record:
        noted = {name: round(ratio, 3) for name, ratio in ratios.items()}
        RECORD.write_text(json.dumps(known | {own: noted}, ensure_ascii=False, indent=1) + "\n", "utf-8")
    elif not record:
        sys.stdout.write(
            f"Nothing is compared: of this processor ({own}) there is no record. To make one: "
            "python -m bench.speed.regression --record\n"
        )
    return report_losses(ratios, compared)


def processor(facts: Path = Path("/proc/cpuinfo")) -> str:
    """Return which kind of processor this is, as far as the system tells."""
    lines = facts.read_text("utf-8").splitlines() if facts.exists() else []
    facts_by_name = {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))
    }
    parts = [f"{name} {facts_by_name[name]}" for name in ("cpu family", "model") if name in facts_by_name]
    return ", ".join([facts_by_name.get("model name") or platform.processor() or platform.machine(), *parts])


def report_losses(ratios: Mapping[str, float], record: Mapping[str, float]) -> int:
    """Say what was lost and what to do; return the exit code."""
    if not (lost := losses(ratios, record)):
        return 0
    for name in lost:
        share = ratios[name] / record[name] - 1 if name in record else 0
        sys.stderr.write(f"{name} takes {share:.0%} longer than on record, beside numpy in the same run\n")
    sys.stderr.write(
        "Find what made it slower. Where that is meant: python -m bench.speed.regression --record\n"
    )
    return 1


def losses(ratios: Mapping[str, float], record: Mapping[str, float]) -> list[str]:
    """Return the ways that lost a quarter against the record, and those that it should know and does not."""
    return [name for name in ratios if record and ratios[name] > record.get(name, 0) * LOSS]


def measured(
    ways: Mapping[str, Work],
    plain: Work,
    record: Mapping[str, float],
    rounds: int = _ROUNDS,
    seconds: float = _SECONDS,
) -> dict[str, float]:
    """Return the time of each way as a multiple of the reference's; the best rounds of both.

    Args:
        record: after ``rounds`` rounds it is done if nothing is lost, or else when ``seconds`` are over.
    """
    least, own = dict.fromkeys(ways, float("inf")), float("inf")
    start, done = time.perf_counter(), 0
    while True:
        own = min(own, processor_time(plain))
        for name, work in ways.items():
            least[name] = min(least[name], processor_time(work))
        done += 1
        ratios = {name: value / own for name, value in least.items()}
        if done >= rounds and (not losses(ratios, record) or time.perf_counter() - start > seconds):
            return ratios


def reference() -> Work:
    """Return plain numpy work that nobody will make faster here.

    In memory that it has and that fits into a core's own cache: what a system takes for handing out memory
    differs several times between machines, and would hide a loss on some of them.
    """
    chance = np.random.default_rng(84)
    places = chance.integers(0, _VALUES, _VALUES)
    table = chance.integers(0, 2**64, _VALUES, np.uint64)
    starts = np.arange(0, _VALUES, 512)
    values, low, product = table.copy(), np.empty(_VALUES, np.uint32), np.empty(_VALUES, np.uint32)
    least = np.empty(len(starts), np.uint32)

    def work() -> None:
        for _ in range(_TIMES):
            np.take(table, places, out=values, mode="clip")
            np.multiply(values, np.uint64(0x9E3779B97F4A7C15), out=values)
            np.cumsum(values, out=values)
            low[:] = values
            for factor in range(1, 33, 2):
                np.multiply(low, np.uint32(factor), out=product)
                np.minimum.reduceat(product, starts, out=least)
            values.sort()

    return work


def every_way() -> dict[str, Work]:
    """Return what is watched, warm."""
    texts = (*corpora.generated("ru", 50, 500), *corpora.generated("en", 50, 500))
    scheme = make_scheme()
    words, quick = Canonicalizer(scheme.languages), Fingerprinter(scheme)
    assert quick.compile(), "the extra fast is not installed"
    assert Fingerprinter(scheme, words).fingerprint_json(texts) == quick.fingerprint_json(texts)
    pages = [
        f"<div><h1>{text[:60]}</h1><p>{text[60:900]}</p><ul><li>{text[900:]}</li></ul></div>"
        for text in texts
    ]
    signer = Signer(scheme, SignOptions(("body",)), quick.canonicalizer)
    assert signer.tools.fingerprinter.compile()
    encoded = [msgspec.json.encode({"id": str(number), "body": text}) for number, text in enumerate(texts)]
    span = _span(encoded)
    assert signer.fast_path() is not None
    ways: dict[str, Work] = {
        # A new one each time, as each turns to compiled code by itself after so many texts.
        "text → fingerprint, numpy": lambda: Fingerprinter(scheme, words).fingerprint_json(texts),
        "text → fingerprint, compiled": lambda: quick.fingerprint_json(texts),
        "line → line with fingerprint": lambda: signer.signed_lines(span, SignTally()),
        "HTML → text": lambda: list(map(strip_html, pages)),
        "text without markup → text": lambda: list(map(strip_html, texts)),
    }
    for work in ways.values():
        work()
    return ways


def _span(lines: Sequence[bytes]) -> ByteRange:
    """Return lines as a range of a file, which is removed when this process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = Path(folder) / "lines.jsonl"
    path.write_bytes(b"\n".join([*lines, b""]))
    return ByteRange(str(path), 0, path.stat().st_size, "utf-8", 1.0)


if __name__ == "__main__":
    sys.exit(main())
