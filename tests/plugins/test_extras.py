"""Without its optional part a language says what to install, and the others work."""

import os
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

import shinglefold
from shinglefold.registry import language_class

OPTIONAL = ("pymorphy3", "dawg", "opencc")


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return a path that has what is installed here but for the optional parts."""
    site = tmp_path_factory.mktemp("bare")
    for item in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not item.name.lower().startswith(OPTIONAL) and item.suffix != ".pth":
            (site / item.name).symlink_to(item)
    package = Path(shinglefold.__file__).parent
    if not (site / "shinglefold").exists():
        (site / "shinglefold").symlink_to(package)
    return site


def run(program, site):
    # -S: no site-packages but the given one.
    command = [sys.executable, "-S", "-P", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long(every=6)
@pytest.mark.parametrize("code", ["ru", "uk", "zh"])
@pytest.mark.parametrize("made", ["make_scheme(codes=[{!r}])", "language_class({!r})(CanonOptions())"])
def test_a_scheme_with_the_language_and_the_language_name_the_pip_command(bare, code, made):
    imports = "from shinglefold.registry import *; from shinglefold.model.scheme import CanonOptions; "
    done = run(imports + made.format(code), bare)
    assert "MissingExtra" in done.stderr
    assert f"pip install 'shinglefold[{code}]'" in done.stderr


def test_english_and_any_need_no_optional_part(bare):
    program = (
        "from shinglefold.canon import Canonicalizer; from shinglefold.registry import references; "
        "print([t.text for t in Canonicalizer(references(['any', 'en'])).tokens('the cats 猫')])"
    )
    done = run(program, bare)
    assert done.stdout.strip() == "['the', 'cat', '猫']", done.stderr


def test_importing_the_plugins_loads_no_dictionary():
    program = (
        "import sys; from shinglefold.registry import installed_languages, make_scheme, load_languages; "
        "load_languages(make_scheme().languages); "
        "print([name for name in ('pymorphy3', 'nltk', 'opencc') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() in ("[]", "['opencc']"), done.stderr


@pytest.mark.parametrize(
    ("code", "distribution"),
    [("ru", "pymorphy3-dicts-ru"), ("uk", "pymorphy3-dicts-uk"), ("zh", "opencc-python-reimplemented")],
)
def test_a_version_names_the_dictionary_it_depends_on(code, distribution):
    assert language_class(code).version().endswith(f"+{version(distribution)}")
