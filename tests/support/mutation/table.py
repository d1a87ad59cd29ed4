"""What trials found: kept a line each, told as a table, with the survivors and why some may."""

import difflib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

from support.mutation.mutants import Mutant
from support.mutation.trial import Outcome

_JUSTIFIED = Path(__file__).with_name("justified.toml")
#: A file, and what stands there before and after: a mutant, wherever its line has gone.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a package; ``places`` is how many could be changed."""

    package: str
    places: int
    outcomes: Counter[str]

    def __str__(self) -> str:
        killed = self.outcomes["killed"] + self.outcomes["hung"]
        left = self.outcomes["survived"] + self.outcomes["untested"]
        justified = self.outcomes["justified"]
        tried = killed + left + justified
        return f"| `{self.package}` | {self.places:,} | {tried} | {killed} | {justified} | {left} |"


def change(mutant: Mutant) -> Key:
    """Return the file and the lines that a mutant changes, before and after, without the space around.

    Where a decorator goes, they are those of the definition, too, which tells it from others of its kind.
    """
    before, after = mutant.source.splitlines(), (mutant.mutated() or "").splitlines()
    told = [line for line in difflib.unified_diff(before, after, lineterm="", n=1) if line[1:].strip()][2:]
    lines = [*dropwhile(lambda line: line[0] not in "-+", told)]
    bare = mutant.operator.endswith("RemoveDecorator")
    gone, come = (
        " ".join(line[1:].strip() for line in lines if line[0] == mark or (bare and line[0] == " "))
        for mark in "-+"
    )
    return mutant.path, gone, come


def justified() -> Mapping[Key, str]:
    """Return why a mutant may survive, by file and change."""
    kept = tomllib.loads(_JUSTIFIED.read_text("utf-8")).get("mutant", [])
    return {(one["file"], one["before"], one["after"]): one["why"] for one in kept}


def keep(file: Path, mutant: Mutant, outcome: Outcome) -> dict[str, Any]:
    """Append what became of a mutant to a file of results, and return it."""
    _, before, after = change(mutant)
    line = {**asdict(mutant), "before": before, "after": after, **asdict(outcome)}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return line


def kept(file: Path) -> dict[Key, dict[str, Any]]:
    """Read a file of results; a mutant tried twice is told as it was found last."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {(one["path"], one["before"], one["after"]): one for one in map(json.loads, lines)}


def tell(package: str, places: int, results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Tell the figures of a package, then each mutant that survived and why it may, or that it may not."""
    reasons = justified()
    outcomes, lines = Counter(), []
    for one in results:
        word = one["word"]
        why = reasons.get((one["path"], one["before"], one["after"])) if word == "survived" else None
        outcomes["justified" if why else word] += 1
        if word in {"survived", "untested"}:
            place = f"{one['path']}:{one['first'][0]}"
            lines += [f"{place} {word}: {why or 'no reason is known'}\n- {one['before']}\n+ {one['after']}"]
    yield from sorted(lines)
    yield str(Row(package, places, outcomes))
