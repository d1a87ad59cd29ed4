"""What a stranger installs holds what is in the folders: no module less, no module more."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES: dict[str, str] = SETTINGS["tool"]["setuptools"]["package-dir"]
CARRIED = {".py", ".txt", ".toml", ".json", ".jsonl", ".typed", ".html", ".css", ".js", ".svg"}
#: Folders at the top that are no packages.
APART = {"tests", "bench", "docs", "docker", "build", "dist", "integrations"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources: a build beside them would leave its own copy of every module there."""
    folder = tmp_path_factory.mktemp("source")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def build(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", source, tmp_path_factory.mktemp("wheel")))


@pytest.mark.long
def test_the_source_distribution_has_everything_that_is_tracked(source, tmp_path):
    with tarfile.open(build("sdist", source, tmp_path)) as packed:
        carried = {member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()}
    assert set(tracked()) - carried == set()


def carried_names(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.long
def test_the_wheel_carries_every_source_under_its_package_name(wheel):
    expected = {
        f"{package.replace('.', '/')}/{path.name}"
        for package, folder in PACKAGES.items()
        for path in (ROOT / folder).iterdir()
        if path.is_file() and path.suffix in CARRIED
    }
    pages = ROOT / "gateway" / "pages"
    expected |= {
        f"shinglefold/gateway/pages/{path.relative_to(pages).as_posix()}"
        for folder in ("templates", "static")
        for path in (pages / folder).iterdir()
    }
    assert carried_names(wheel) == expected


def test_the_list_of_packages_is_the_map_of_folders():
    assert sorted(SETTINGS["tool"]["setuptools"]["packages"]) == sorted(PACKAGES)


def test_every_folder_with_modules_is_a_package():
    with_modules = {
        str(path.parent.relative_to(ROOT))
        for path in ROOT.glob("*/**/__init__.py")
        if not path.relative_to(ROOT).parts[0].startswith(".")
    }
    outside = {folder for folder in with_modules if folder.split("/")[0] in APART or "_template" in folder}
    assert with_modules - outside == set(PACKAGES.values())


@pytest.mark.long
def test_the_wheel_names_its_languages_and_its_command(wheel):
    entry_points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    text = wheel.read(entry_points).decode()
    for code in ("any", "en", "ru", "uk", "zh"):
        assert f"{code} = shinglefold.plugins.{code}:" in text
    assert "shinglefold = shinglefold.cli.main:main" in text


def test_all_extras_together_are_all_extras():
    extras = SETTINGS["project"]["optional-dependencies"]
    named = extras["all"][0].removeprefix("shinglefold[").removesuffix("]").split(",")
    # What measures and tests it is no part of it, nor is Spark: 450 MB, and it wants Java.
    assert set(named) == set(extras) - {"all", "bench", "dev", "spark"}


@pytest.mark.long
def test_the_command_of_the_tutorial_installs_from_a_clone(source, tmp_path):
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    (command,) = re.findall(r"^pip install '(\.\[[a-z,]+\])'$", page, re.MULTILINE)
    # What it depends on is here already; what is asked is whether the clone can be installed.
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, command], cwd=source, check=True)
    ran = subprocess.run(
        [sys.executable, "-m", "shinglefold", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("shinglefold ")
    extras = SETTINGS["project"]["optional-dependencies"]
    assert set(command[2:-1].split(",")) <= extras.keys()


def code_lines(path: Path) -> int:
    """Return how many lines of a module are neither blank, nor a comment, nor a docstring."""
    text = path.read_text("utf-8")
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in told for number, line in lines)


#: The packages of each distribution in integrations/.
INTEGRATIONS: dict[str, list[str]] = {
    path.parent.name: tomllib.loads(path.read_text("utf-8"))["tool"]["setuptools"]["packages"]
    for path in sorted(ROOT.glob("integrations/*/pyproject.toml"))
}


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_an_integration_stays_thin(name):
    folders = [ROOT / "integrations" / name / package.replace(".", "/") for package in INTEGRATIONS[name]]
    assert 0 < sum(code_lines(path) for folder in folders for path in folder.glob("*.py")) <= 150


@pytest.mark.long
@pytest.mark.parametrize("name", INTEGRATIONS)
def test_an_integration_installs_alone_and_passes_its_tests(name, wheel, source, tmp_path):
    folder, environment = source / "integrations" / name, tmp_path / "environment"
    # The certificates of the system are those that pip trusts.
    uv, python = [sys.executable, "-m", "uv", "--quiet", "--native-tls"], environment / "bin" / "python"
    subprocess.run([*uv, "venv", "--python", sys.executable, environment], check=True)
    given = [str(wheel.filename), f"{folder}[test]"]
    subprocess.run([*uv, "pip", "install", "--python", python, *given], check=True)
    # Not `python -m pytest`, which would import the package from the folder.
    subprocess.run([environment / "bin" / "pytest", "-q"], cwd=folder, check=True)
