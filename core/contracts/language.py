"""The contract of a language plugin: a pure function of one word, and the facts canon needs to call it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from shinglefold.model.scheme import CanonOptions, Mode
from shinglefold.model.values import Sample

Unit = Literal["word", "char"]
_STRENGTH: tuple[Mode, ...] = ("lemma", "stem", "surface")


class Language(ABC):
    """One language. canon supplies clean-up, segmentation, language detection, caching, hashing and offsets.

    A plugin is a subclass with an entry point in the group ``shinglefold.languages``. Importing its module
    must not load dictionaries: load them in ``__init__`` or at the first word. If they are not installed,
    ``version`` and ``__init__`` raise ``MissingExtra``, and new schemes leave the language out. An instance
    must be usable by several threads and after a fork.
    """

    #: ISO 639 code; it is stored with the documents.
    code: ClassVar[str]
    #: ISO 15924 codes of the scripts it is written in: ``Cyrl``, ``Hani``, ``Latn`` …; ``Zyyy`` takes all
    #: words that no other language takes.
    scripts: ClassVar[frozenset[str]]
    #: Lower-case letters that no other language of its script has (``ыэъё`` against ``іїєґ``).
    marks: ClassVar[str] = ""
    #: Whether ``knows`` tells the words of the language from others.
    lexical: ClassVar[bool] = False
    #: If a text fits several languages of one script equally well, the lowest precedence wins.
    precedence: ClassVar[int] = 100
    unit: ClassVar[Unit] = "word"
    #: The supported modes, besides ``surface``.
    modes: ClassVar[frozenset[Mode]] = frozenset({"surface"})
    #: Code point → replacement (empty deletes), applied after canon's own folds (case, width, apostrophes).
    fold: Mapping[int, str] = MappingProxyType({})
    #: Whether every canonical token is its own canonical form.
    idempotent: ClassVar[bool] = True
    #: Words for numbers, dates and times, for true and false, and words that negate the next one, with spaces
    #: between them. ``fold_chunks`` keeps chunks apart by these.
    values: ClassVar[str] = ""
    negations: ClassVar[str] = ""
    #: Articles, and other words between a negation and the word it negates, with spaces between them.
    articles: ClassVar[str] = ""
    #: Pairs of texts that the conformance kit compares.
    samples: ClassVar[tuple[Sample, ...]] = ()

    def __init__(self, options: CanonOptions) -> None:
        self.options = options

    @classmethod
    def made_as(cls, version: str) -> "type[Language] | None":
        """Return the class that makes the tokens of an earlier version; None if there is none.

        A language whose rules change keeps the earlier rules, so that documents can still be added to indices
        made with them.
        """
        return cls if version == cls.version() else None

    @classmethod
    def version(cls) -> str:
        """Return the version of rules and dictionary; any change to a canonical form needs a new one."""
        return "1"

    @classmethod
    def mode_for(cls, wanted: Mode) -> Mode:
        """Return the strongest supported mode that is not stronger than the wanted one."""
        for mode in _STRENGTH[_STRENGTH.index(wanted) :]:
            if mode in cls.modes:
                return mode
        return "surface"

    @property
    def mode(self) -> Mode:
        """The mode that the options select."""
        return self.mode_for(self.options.mode)

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has a word, as ``canonical`` gets it; asked only if ``lexical``.

        Must be pure, and must not raise.
        """
        return False

    @abstractmethod
    def canonical(self, word: str) -> str | None:
        """Return the canonical form of one word, or None to drop it.

        Args:
            word: not empty; NFC, lower case, apostrophes as ``'``, letters folded by ``fold``. One character
                if ``unit`` is ``char``.

        Must be pure, because results are cached, and must not raise.
        """
