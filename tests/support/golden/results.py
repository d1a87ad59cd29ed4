"""The results on record, a file a kind, and how they are computed."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from support.golden.corpora import CORPORA, file_of
from support.golden.folds import collapsed, fingerprints
from support.golden.pairs import pairs
from support.golden.searches import searches

RECORDS = Path(__file__).resolve().parents[2] / "golden" / "results"
_Results = dict[str, Any]


def _each(compute: Callable[[Path, str], _Results]) -> Callable[[Path, Sequence[str]], _Results]:
    return lambda folder, corpora: {corpus: compute(folder, corpus) for corpus in corpora}


def _editions(folder: Path, corpora: Sequence[str]) -> _Results:
    return {corpus: sha256(file_of(folder, corpus).read_bytes()).hexdigest() for corpus in corpora}


#: By kind, from the corpora's folder and their names to results by corpus. ``searches`` alone depends on the
#: embedded engine, which may learn to rank otherwise; the others hold as long as the scheme does.
KINDS: Mapping[str, Callable[[Path, Sequence[str]], _Results]] = MappingProxyType(
    {
        "editions": _editions,
        "pairs": _each(pairs),
        "fingerprints": _each(fingerprints),
        "collapse": _each(collapsed),
        "searches": searches,
    }
)


def computed(kind: str, folder: Path, corpora: Sequence[str] = CORPORA) -> _Results:
    """Return the results of a kind by corpus, as they are now."""
    return KINDS[kind](folder, corpora)


def recorded(kind: str) -> _Results:
    """Return the results on record by corpus."""
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
