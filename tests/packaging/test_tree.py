"""Promises about the tree as a whole."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "core",
    "canon",
    "sketch",
    "passages",
    "relatives",
    "ingest",
    "offline",
    "maintenance",
    "engines",
    "rerank",
    "grouping",
    "api",
    "gateway",
    "plugins",
    "testing",
    "cli",
    "examples",
)


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def test_files_stay_small():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 450
    }
    assert not long


def test_no_file_names_a_machine_or_a_package_registry():
    told = re.compile(r"/work/|/root/|/home/\w|index-url|registry\.npmjs|pypi\.org/simple")
    own = Path(__file__).resolve()
    guilty = [
        str(path.relative_to(ROOT))
        for path in tracked("*.py", "*.toml", "*.md", "*.cfg", "*.yml", "*.json", "Makefile", ".ci", "docker")
        if path != own and told.search(path.read_text("utf-8"))
    ]
    assert not guilty


def test_the_rule_that_core_stands_alone_is_about_all_of_core():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (rule,) = [one for one in settings["contracts"] if one["name"] == "core stands alone"]
    parts = [path for path in (ROOT / "core").iterdir() if path.is_dir() or path.suffix == ".py"]
    modules = {f"shinglefold.{path.stem}" for path in parts if path.stem[0] != "_"}
    assert set(rule["source_modules"]) == modules
    rooms = {f"shinglefold.{folder}" for folder in SOURCES if folder != "core"}
    assert set(rule["forbidden_modules"]) == rooms


def test_there_is_no_room_called_utils():
    assert not [path for path in tracked("*.py") if path.stem in {"utils", "helpers", "misc", "common"}]


def test_every_folder_is_explained_in_the_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = {*SOURCES, "integrations", "opensearch-plugin", "tests", "bench", "docs", "docker"}
    assert not [folder for folder in sorted(folders) if f"`{folder}/`" not in text]


def test_what_the_architecture_names_in_a_file_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = re.findall(r"`(\w+)(?:\(\))?` in `([\w/.-]+\.(?:py|java))`", text)
    assert len(named) > 10
    files = [path for path in tracked("*.py", "*.java") if "tests" not in path.parts]
    for name, place in named:
        texts = [path.read_text("utf-8") for path in files if path.as_posix().endswith(f"/{place}")]
        assert any(re.search(rf"\b{name}\b", one) for one in texts), f"{name} in {place}"


def product() -> list[Path]:
    """The modules of the product: not the texts that readers copy, whose names frameworks set."""
    return [
        path
        for path in tracked("*.py")
        if path.relative_to(ROOT).parts[0] in SOURCES
        and not {"_template", "frameworks", "clients"} & {*path.parts}
    ]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in product()}


def test_a_class_has_its_name_alone(trees):
    homes: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_no_folder_has_more_than_a_dozen_modules():
    counts = Counter(
        path.parent.relative_to(ROOT).as_posix() for path in product() if path.name != "__init__.py"
    )
    assert not {folder: count for folder, count in counts.items() if count > 12}


def test_the_product_has_at_most_350_files():
    assert len(product()) <= 350


#: Modules of less than 40 lines, with the reason why they stand alone.
SHORT = {
    "core/__main__.py": "a door: python -m shinglefold",
    "core/version.py": "read by all, imports nothing",
    "core/model/linkage.py": "one value that core, sketch and grouping share",
    "testing/engines/conformance.py": "joins the parts of the kit into the class that engines inherit",
}


def test_only_modules_with_a_reason_have_less_than_40_lines():
    short = {
        path.relative_to(ROOT).as_posix()
        for path in product()
        if path.name != "__init__.py" and len(path.read_text("utf-8").splitlines()) < 40
    }
    assert short == SHORT.keys()


def module_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    own = parts[1:] if parts[0] == "core" else parts
    return ".".join(["shinglefold", *(own[:-1] if own and own[-1] == "__init__" else own)])


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, which are where classes and imports stand; expressions are most."""
    for below in ast.iter_child_nodes(tree):
        if not isinstance(below, ast.expr):
            yield below
            yield from statements(below)


def imported_by(tree: ast.Module, modules: set[str]) -> set[str]:
    """Return what a module imports when it runs, at its top or in its functions."""
    typed = {
        id(below)
        for node in statements(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for below in statements(node)
    }
    found: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typed and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= names or ({node.module} & modules)
    return found


def test_no_modules_import_each_other_in_a_circle(trees):
    modules = {module_of(path) for path in trees}
    arrows = {module_of(path): imported_by(tree, modules) - {module_of(path)} for path, tree in trees.items()}
    # Whoever imports nothing that is left is in no circle.
    while done := [name for name, below in arrows.items() if not below & arrows.keys()]:
        for name in done:
            del arrows[name]
    while done := [name for name in arrows if not any(name in below for below in arrows.values())]:
        for name in done:
            del arrows[name]
    assert not sorted(arrows)
