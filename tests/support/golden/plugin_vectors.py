"""What our plugin must decide as Python does: ``PYTHONPATH=tests python -m support.golden.plugin_vectors``.

The plugin's Java tests read the record that this writes; a Python test sees that Python still decides so.
"""

import json
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
from support.hits import SCHEME
from support.plugin_trials import documents

from shinglefold.contracts.engine import JSON
from shinglefold.model.scheme import PRESETS, Scheme
from shinglefold.rerank import FoldOptions, collapse
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate

RECORD = Path(__file__).resolve().parents[3] / "opensearch-plugin/src/test/resources/golden.json"
_SCHEMES = {**PRESETS, "bits 1": Scheme().with_options(bits=1, values=128)}
_RESEMBLANCES = (0.01, 0.3, 0.5, 0.61, 0.62, 0.8, 0.999, 1.0)
_PAGES: tuple[JSON, ...] = (
    {},
    {"min_resemblance": 0.4, "min_length_ratio": 0},
    {"min_shared": 2, "min_resemblance": 0},
    {"representative": ["newest:published", "longest"]},
    {"representative": "prefer:host=b.org,a.org", "scope": "published:2d"},
    {"representative": ["shortest_url", "https_first"], "scope": ["host"]},
    {"representative": "oldest:published", "scope": {"field": "list"}},
    {"representative": "prefer:ratio=10000000.0,1e+16,1e-05,2e+22,12345678.25", "min_resemblance": 0.4},
    {"scope": "ratio", "min_resemblance": 0.4},
    {"representative": "newest:told", "min_resemblance": 0.01, "min_length_ratio": 0},
    {"representative": "oldest:told", "scope": "told:30d", "min_resemblance": 0.01, "min_length_ratio": 0},
)
_HITS = 100
#: Dates as text, in all forms that Python reads, and some that it does not.
DATES = (
    "2026-01-01", "20260102", "2026-W01-6", "2026-W02", "2026W027", "2026W03", "2026-W53-1", "2026-W54",
    "2026-01-04 10:00:00", "2026-01-05T10", "2026-01-06T10:11", "20260107T101112", "2026-01-08t10:11:12",
    "2026-01-09T10:11:12.5Z", "2026-01-09T10:11:12,123456789", "2026-01-10T10:11:12z", "2026-01-11T24:00:00Z",
    "2026-01-12T10:00+02", "2026-01-12T10:00:00+0230", "2026-01-12T10:00:00-02:30:15",
    "2026-01-12T10:00+24:00", "2026-02-30", "2026-01-13T10:00:60", "2026-01-13T1011:12", "0000-01-01",
    "0001-01-01", "10000-01-01", "2026-1-1", "1767225600000", "-5", "--5", "", "-", "x", "1e12", "+5",
    "2026", "2026-01", "2026-001", "9" * 70,
)  # fmt: skip


def vectors() -> JSON:
    """Return schemes with estimates and pairs of signatures, and pages: hits in, groups out."""
    return {
        "schemes": [_of_scheme(name, scheme) for name, scheme in _SCHEMES.items()],
        "recipe": _recipe(SCHEME),
        "hits": [_fields(document) for document in documents()[:_HITS]],
        "pages": [_page(options, order) for order, options in enumerate(_PAGES)],
    }


def _recipe(scheme: Scheme) -> JSON:
    return {**scheme.to_json(), "languages": [], "field": "_dedup"}


def _of_scheme(name: str, scheme: Scheme) -> JSON:
    sketch = scheme.sketch
    needs = [Matcher.of(scheme, FoldOptions(min_resemblance=one)).need for one in _RESEMBLANCES]
    estimates = estimate(np.arange(sketch.values + 1), sketch.values, sketch.bits)[0]
    return {
        "recipe": {**_recipe(scheme), "name": name},
        "estimates": estimates[:: max(1, sketch.values // 12)].tolist(),
        "every": max(1, sketch.values // 12),
        "needs": dict(zip(map(str, _RESEMBLANCES), needs, strict=True)),
        "pairs": [_pair(scheme, random.Random(seed)) for seed in range(3)],
    }


def _pair(scheme: Scheme, rng: random.Random) -> JSON:
    size = -(-scheme.sketch.values * scheme.sketch.bits // 8)
    one = rng.randbytes(size)
    other = bytes(byte if rng.random() < 0.7 else rng.randrange(256) for byte in one)
    rows = [np.frombuffer(signature, np.uint8)[None] for signature in (one, other)]
    agreeing = int(agreement_rows(rows[0], rows[1], scheme.sketch.bits, scheme.sketch.values)[0])
    return {"one": b64encode(one).decode(), "other": b64encode(other).decode(), "agreeing": agreeing}


def _fields(document: JSON) -> dict[str, list[Any]]:
    """Return a document as its doc values, with its supershingles."""
    stored = document["_dedup"] or {}
    parts = {
        f"_dedup.{name}": stored[name] for name in ("digest", "signature", "supershingles") if name in stored
    }
    shown = {
        name: document[name] for name in ("host", "url", "published", "list", "ratio") if name in document
    }
    shown["told"] = DATES[document["number"] % len(DATES)]
    values = {name: value if isinstance(value, list) else [value] for name, value in (parts | shown).items()}
    return {name: value for name, value in values.items() if value not in ([None], [])}


def _page(options: JSON, seed: int) -> JSON:
    order = list(range(_HITS))
    random.Random(seed).shuffle(order)
    hits = [_fields(documents()[place]) for place in order]
    found = collapse(
        [{"_id": str(at), "fields": hit} for at, hit in enumerate(hits)], SCHEME, FoldOptions.parse(options)
    )
    counts = found.counts
    return {
        "options": options,
        "order": order,
        "groups": [[shown, list(members)] for shown, members in found.groups],
        "unsigned": counts.unsigned,
        "unreadable": counts.unreadable,
        "other_schemes": dict(sorted(counts.other_schemes.items())),
        "languages": dict(sorted(counts.languages.items())),
    }


def text(found: JSON) -> str:
    """Return vectors as JSON, a line an entry, so that a diff names what differs."""
    parts = []
    for name, value in found.items():
        rows = value if isinstance(value, list) else [value]
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f'"{name}": [\n  {lines}\n ]' if isinstance(value, list) else f'"{name}": {lines}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"


if __name__ == "__main__":
    RECORD.write_text(text(vectors()), "utf-8")
