"""The results on record, a file a kind, and how they are computed."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from support.golden.corpora import file_of
from support.golden.folds import collapsed, fingerprints
from support.golden.pairs import pairs
from support.golden.searches import searches

RECORDS = Path(__file__).resolve().parents[2] / "golden" / "results"
_Results = dict[str, Any]


def _edition(folder: Path, corpus: str) -> str:
    return sha256(file_of(folder, corpus).read_bytes()).hexdigest()


#: How a kind is computed from the folder of the corpora and the name of one. Only ``searches`` depends on
#: the embedded engine, which may learn to rank otherwise; the others hold as long as the scheme does.
KINDS: Mapping[str, Callable[[Path, str], Any]] = MappingProxyType(
    {
        "editions": _edition,
        "pairs": pairs,
        "fingerprints": fingerprints,
        "collapse": collapsed,
        "searches": searches,
    }
)


def recorded(kind: str) -> _Results:
    results: _Results = json.loads((RECORDS / f"{kind}.json").read_text("utf-8"))
    return results


def record(kind: str, results: _Results) -> None:
    """Put results on record, a line a query or list, so that a diff names what differs."""
    (RECORDS / f"{kind}.json").write_text(_lines(results) + "\n", "utf-8")


def _lines(value: Any, indent: str = "\n ") -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    rows = (f"{indent}{json.dumps(name)}: {_lines(one, indent + ' ')}" for name, one in value.items())
    return "{" + ",".join(rows) + indent[:-1] + "}"
