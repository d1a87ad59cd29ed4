"""What the built-in languages are made of: word lists, stemmers of nltk, dictionaries of pymorphy3.

They are loaded at the first word. ``require`` checks that optional dependencies are installed.
"""

import builtins
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from shinglefold.errors import MissingExtra


def read_lines(code: str, name: str) -> tuple[str, ...]:
    """Return the lines of a file in the folder of a language, without comments (``#``) and blank lines."""
    lines = files(f"shinglefold.plugins.{code}").joinpath(name).read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def read_words(code: str, name: str) -> frozenset[str]:
    """Return the words of a file in the folder of a language."""
    return frozenset(word for line in read_lines(code, name) for word in line.split())


def require(extra: str, language: str, *modules: str) -> None:
    """Check that modules are installed, without importing them.

    Raises:
        MissingExtra: one is not.
    """
    if any(find_spec(module) is None for module in modules):
        raise MissingExtra(extra, language)


def distribution_version(extra: str, language: str, distribution: str) -> str:
    """Return the version of an installed distribution, without importing it; read once a process.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return _version(distribution)
    except PackageNotFoundError as error:
        raise MissingExtra(extra, language) from error


_version = cache(version)


class IsolatedImporter:
    """Imports single modules of a package as private copies, without running the package's ``__init__``.

    The copies can import each other, and everything outside the package. ``sys.modules`` stays unchanged, so
    ordinary imports of the package are not affected.

    Args:
        package: its name.
        unused: modules whose names are imported but never used; these names become None.
    """

    def __init__(self, package: str, unused: Collection[str] = ()) -> None:
        self._package = package
        self._unused = frozenset(unused)
        self._loaded: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str) -> ModuleType:
        """Return a module by its full name.

        Raises:
            ImportError: there is no such file, or the module needs the rest of the package.
        """
        if name not in self._loaded:
            module = self._loaded[name] = ModuleType(name)
            vars(module)["__builtins__"] = self._builtins
            try:
                code = SourceFileLoader(name, str(self._file(name))).get_code(name)
                assert code is not None
                exec(code, vars(module))  # noqa: S102 - as an import does
            except Exception as error:
                del self._loaded[name]
                raise ImportError(
                    f"{name} can't be loaded without the rest of {self._package}: {error}"
                ) from error
        return self._loaded[name]

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:  # noqa: ANN401 - what an import statement takes names from
        """Replace ``__import__`` within the loaded modules."""
        if level or name.partition(".")[0] != self._package:
            return builtins.__import__(name, globals_, locals_, names or (), level)
        if not names:
            raise ImportError(f"import {name}: only names can be imported from {self._package}")
        if name in self._unused:
            return _Names(dict.fromkeys(names))
        if self._file(name).exists():
            return self.load(name)
        return _Names({one: self.load(f"{name}.{one}") for one in names})

    def _file(self, name: str) -> Path:
        spec = find_spec(self._package)
        if spec is None or not spec.submodule_search_locations:
            raise ImportError(f"no package {self._package}")
        return Path(spec.submodule_search_locations[0], *name.split(".")[1:]).with_suffix(".py")


class _Names:
    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


class Snowball:
    """The stemmer of one language, loaded at the first word.

    Importing all of nltk takes 0.3 s, and seconds if scipy is installed; the six modules needed take a tenth.
    If the stemmers of another version need more modules, all of nltk is imported.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._stem: Callable[[str], str] | None = None

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word; never empty."""
        stem = self._stem or self._load()
        return stem(word) or word

    def _load(self) -> Callable[[str], str]:
        stem: Callable[[str], str] = _snowball().SnowballStemmer(self._language).stem
        self._stem = stem
        return stem


@cache
def _snowball() -> ModuleType:
    try:
        # ``nltk.corpus`` has stop words, which stemmers read only with ``ignore_stopwords``.
        return IsolatedImporter("nltk", unused=["nltk.corpus"]).load("nltk.stem.snowball")
    except ImportError:
        return import_module("nltk.stem.snowball")


class Parse(NamedTuple):
    """One reading of a word: its lemma, and its grammemes, which include the part of speech."""

    lemma: str
    grammemes: Set[str]


class Morphology:
    """The analyzer of a language, loaded at the first word; instances share a dictionary.

    Two threads may both load it at their first word, and one copy is dropped. A lock would be worse: a
    process forked while it is locked could never analyze a word.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._analyze: Callable[[str], list[Any]] | None = None
        self._first: Callable[[str], Parse | None] | None = None

    def parses(self, word: str) -> list[Parse]:
        """Return the readings of a lower-case word, best first if the dictionary has scores.

        Cost: 10–150 µs; the first call loads the dictionary, about 0.05 s and 20 MB.
        """
        analyze = self._analyze or self._load()
        return [Parse(parse[2], parse[1].grammemes) for parse in analyze(word)]

    def best(self, word: str) -> Parse:
        """Return the first of ``parses``. Cost: 5 µs for a word in the dictionary."""
        find = self._first or self._load_first()
        return find(word) or self.parses(word)[0]

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has a word. Cost: 2 µs."""
        known: bool = _analyzer(self._code, self._path()).word_is_known(word)
        return known

    def _load_first(self) -> Callable[[str], Parse | None]:
        self._load()
        self._first = _first_by_lookup(self._code, self._path())
        return self._first

    def _path(self) -> str:
        # The dictionary is loaded by path, because an environment variable can override that of a language.
        path: str = import_module(f"pymorphy3_dicts_{self._code}").get_path()
        return path

    def _load(self) -> Callable[[str], list[Any]]:
        analyze: Callable[[str], list[Any]] = _analyzer(self._code, self._path()).parse
        self._analyze = analyze
        return analyze


# Shared by all instances: the analyzer never changes.
@cache
def _analyzer(code: str, path: str) -> Any:  # noqa: ANN401 - pymorphy3's analyzer, which has no types
    from pymorphy3 import MorphAnalyzer

    plain: Any = None  # plain tuples instead of objects, which the parameter's type hint lacks
    return MorphAnalyzer(path=path, lang=code, result_type=plain)


@cache
def _first_by_lookup(code: str, path: str) -> Callable[[str], Parse | None]:
    """Return a function from a lower-case word to its first reading, None if the dictionary lacks the word.

    pymorphy3 computes lemmas and scores of all readings. This function computes the lemma of the best reading
    only, and no score if there is only one reading.
    """
    analyzer = _analyzer(code, path)
    try:
        dictionary, chances = analyzer.dictionary, analyzer.prob_estimator.p_t_given_w.get
        similar, replaced = dictionary.words.similar_items, analyzer.char_substitutes
        paradigms, tags, lemma_of = dictionary.paradigms, dictionary.gramtab, dictionary.build_normal_form
    except AttributeError:
        # An unknown version of pymorphy3, or a dictionary without probabilities.
        return lambda _: None
    written = [f":{tag}" for tag in tags]

    def tag_at(paradigm: int, form: int) -> int:
        # A paradigm has equally many endings, tags and prefixes.
        rules = paradigms[paradigm]
        tag: int = rules[len(rules) // 3 + form]
        return tag

    def first(word: str) -> Parse | None:
        found = [(spelling, *place) for spelling, places in similar(word, replaced) for place in places]
        if not found:
            return None
        spelling, paradigm, form = found[0]
        tag, best = tag_at(paradigm, form), 0
        for other in found if len(found) > 1 else ():
            # The first of equals, and the first of all if none has a probability.
            number = tag_at(*other[1:])
            if (chance := chances(word + written[number], 0)) > best:
                best, tag, (spelling, paradigm, form) = chance, number, other
        return Parse(lemma_of(paradigm, form, spelling), tags[tag].grammemes)

    return first
