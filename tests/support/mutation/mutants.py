"""The mutants of a package, as cosmic-ray makes them, and a random sample of them."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

_ROOT = Path(__file__).resolve().parents[3]
#: They change nothing, or what a linter sees to (``is`` for ``==``).
_LEFT_OUT = ("NoOp", "_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq")
#: Type checkers see to ``frozen``; the others are for speed and for developers' eyes.
_LAYOUT = ("slots", "frozen", "repr")

Position = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change of one file: an operator at its n-th occurrence."""

    path: str
    first: Position
    last: Position
    operator: str
    occurrence: int

    @property
    def source(self) -> str:
        return _text(self.path)

    def mutated(self) -> str | None:
        """Return the file as changed, or None where the change is none, or no Python."""
        try:
            made = mutate_code(self.source, _operators()[self.operator], self.occurrence)
            same = made is None or ast.dump(ast.parse(made)) == ast.dump(ast.parse(self.source))
        except (SyntaxError, AttributeError):
            # cosmic-ray's ExceptionReplacer stumbles over exceptions with a dot in their names.
            return None
        return None if same else made

    @property
    def module(self) -> str:
        """The name under which the file is imported."""
        parts = list(Path(self.path).with_suffix("").parts)
        parts = parts[1:] if parts[0] == "core" else parts
        return ".".join(["shinglefold", *(part for part in parts if part != "__init__")])


def sample(package: str, size: int, seed: int, file: str = "") -> list[Mutant]:
    """Draw places of a package, or of a file in it, by a seed, and one mutant of each.

    Places are drawn, not mutants: cosmic-ray replaces a ``+`` by eleven other operators and a ``not`` by one,
    so that half of all mutants would be of sums. Each place has a lot of its own, cast by the seed and the
    line it stands in, so that a change elsewhere changes little of a sample.
    """
    drawn: list[Mutant] = []
    for lot, mutants in sorted(_lots(package, seed)):
        if file and mutants[0].path != file:
            continue
        ranked = sorted(mutants, key=lambda one, lot=lot: _lot(f"{lot} {one.operator}"))
        drawn += islice((one for one in ranked if one.mutated()), 1)
        if len(drawn) == size:
            break
    return drawn


def _lots(package: str, seed: int) -> Iterator[tuple[str, list[Mutant]]]:
    met = Counter()
    for (path, first, last), mutants in sorted(_places(package).items()):
        line = _text(path).splitlines()[first[0] - 1]
        place = (path, line.strip(), first[1] - len(line) + len(line.lstrip()), last[1] - last[0])
        met[place] += 1
        yield _lot(f"{seed} {place} {met[place]}"), mutants


def _lot(name: str) -> str:
    return blake2b(name.encode(), digest_size=16).hexdigest()


def count_places(package: str) -> int:
    return len(_places(package))


@cache
def _places(package: str) -> dict[tuple[str, Position, Position], list[Mutant]]:
    found = defaultdict(list)
    for file in sorted((_ROOT / package).rglob("*.py")):
        path = str(file.relative_to(_ROOT))
        untested = _untested_places(_text(path))
        for one in _mutants(path):
            if not any(begin <= one.first and one.last <= end for begin, end in untested):
                found[one.path, one.first, one.last] += [one]
    return found


def _mutants(path: str) -> Iterator[Mutant]:
    nodes = list(ast_nodes(get_ast(_text(path))))
    # Where a "+" stands does not depend on which of eleven operators replaces it.
    found: dict[str, list[tuple[Position, Position]]] = {}
    for name, operator in _operators().items():
        replaced = name.rpartition("_")[0] if "BinaryOperator" in name else name
        if replaced not in found:
            found[replaced] = [position for node in nodes for position in operator.mutation_positions(node)]
        for number, (first, last) in enumerate(found[replaced]):
            yield Mutant(path, tuple(first), tuple(last), name, number)


def _untested_places(source: str) -> list[tuple[Position, Position]]:
    """Return where types stand, which no test runs, and how values are laid out and told to developers."""
    nodes = list(ast.walk(ast.parse(source)))
    found = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    found += [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg in _LAYOUT]
    found += [
        node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return [((one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)) for one in found if one]


@cache
def _operators() -> dict[str, Operator]:
    names = sorted(name for name in operator_names() if not name.endswith(_LEFT_OUT))
    return {name: get_operator(name)() for name in names if not get_operator(name).arguments()}


@cache
def _text(path: str) -> str:
    return (_ROOT / path).read_text("utf-8")
