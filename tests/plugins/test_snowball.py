"""Stems are nltk's, though nltk itself is not imported."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from nltk.stem.snowball import SnowballStemmer

from shinglefold.examples import articles
from shinglefold.plugins import resources
from shinglefold.plugins.resources import IsolatedImporter, Snowball

#: What the rules treat apart: exceptions, apostrophes, doubled letters, short words, none at all.
_ODD = (
    "skis dying idly gently ugly early only news howe atlas cosmos bias andes inning outing canning herring"
)
_ODD += " proceed exceed succeed o'neil's dogs' 'cause agreed hopping hoping sky y'all generously ñu"


@pytest.mark.parametrize("language", ["english", "russian"])
def test_every_stem_is_the_one_nltk_makes_as_a_whole(language):
    texts = " ".join(f"{page['title']} {page['body']}" for page in articles()).lower()
    words = {*re.findall(r"[\w']+", texts), *_ODD.split(), ""}
    apart, whole = Snowball(language), SnowballStemmer(language)
    assert len(words) > 3000
    assert {word: apart.stem(word) for word in words} == {word: whole.stem(word) or word for word in words}


def test_a_stem_imports_nothing_of_nltk_and_nltk_can_still_be_imported():
    program = (
        "import sys; from shinglefold.plugins.resources import Snowball; stem = Snowball('english').stem; "
        "print(stem('connections'), [name for name in sys.modules if name.partition('.')[0] == 'nltk']); "
        "import nltk.stem; print(nltk.stem.SnowballStemmer('english').stem('connections'), stem('running'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["connect []", "connect run"], done.stderr


def test_a_package_whose_modules_need_all_of_it_is_imported_as_a_whole(monkeypatch):
    def refuse(_self: IsolatedImporter, name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(IsolatedImporter, "load", refuse)
    monkeypatch.setattr(resources, "_snowball", resources._snowball.__wrapped__)
    assert Snowball("english").stem("connections") == "connect"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package that says so when it is imported as a whole."""
    folder = tmp_path / "heavy"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported as a whole')")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_spec("heavy") is not None
    return folder


def test_modules_loaded_apart_see_each_other_and_the_world(package):
    (package / "one.py").write_text("import os.path\nfrom heavy import two\nfrom heavy.data import words\n")
    (package / "two.py").write_text("from heavy.one import os\nvalue = os.path.basename('a/b')\n")
    loaded = IsolatedImporter("heavy", unused=["heavy.data"]).load("heavy.one")
    assert (loaded.two.value, loaded.words) == ("b", None)
    assert not [name for name in sys.modules if name.startswith("heavy")]


@pytest.mark.parametrize(
    "text", ["import heavy", "from heavy import nowhere", "from . import two", "broken (", "1 / 0"]
)
def test_what_cannot_be_loaded_apart_is_an_import_error_each_time(package, text):
    (package / "one.py").write_text(text)
    apart = IsolatedImporter("heavy")
    for _ in range(2):
        with pytest.raises(ImportError, match=r"heavy\.one can't be loaded without the rest of heavy"):
            apart.load("heavy.one")
    with pytest.raises(ImportError, match="no package lighter"):
        IsolatedImporter("lighter").load("lighter.one")
