"""Snowball stemmers of nltk, imported without the rest of nltk."""

import builtins
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


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
        try:
            # ``nltk.corpus`` has stop words, which stemmers read only with ``ignore_stopwords``.
            module = IsolatedImporter("nltk", unused=["nltk.corpus"]).load("nltk.stem.snowball")
            stemmer = module.SnowballStemmer(self._language)
        except ImportError:
            from nltk.stem.snowball import SnowballStemmer

            stemmer = SnowballStemmer(self._language)
        stem: Callable[[str], str] = stemmer.stem
        self._stem = stem
        return stem
