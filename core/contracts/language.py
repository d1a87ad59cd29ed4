"""The contract of a language plugin: a pure function of one word, and what canon must know to call it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from shinglefold.model.scheme import CanonOptions, Mode
from shinglefold.model.values import Sample

Unit = Literal["word", "char"]
_STRENGTH: tuple[Mode, ...] = ("lemma", "stem", "surface")


class Language(ABC):
    """One language. canon supplies clean-up, segmentation, language choice, caching, hashing and offsets.

    A plugin subclasses this, names itself in the entry-point group ``shinglefold.languages`` and is done.
    Importing its module must not load dictionaries: load them in ``__init__`` or at the first word. Where
    they are not installed, ``version`` and ``__init__`` raise ``MissingExtra``: from ``version`` it is known
    without loading anything, and new schemes leave the language out. An instance must be usable by several
    threads and after a fork.
    """

    #: ISO 639 code, stored with the documents.
    code: ClassVar[str]
    #: ISO 15924 codes of the scripts it is written in: ``Cyrl``, ``Hani``, ``Latn`` …; ``Zyyy`` takes all
    #: words no other language takes.
    scripts: ClassVar[frozenset[str]]
    #: Lower-case letters that tell it from the other languages of its script (``ыэъё`` against ``іїєґ``).
    marks: ClassVar[str] = ""
    #: Of several languages of one script that the text speaks for equally, the lowest takes it.
    precedence: ClassVar[int] = 100
    unit: ClassVar[Unit] = "word"
    #: The modes it can do, besides ``surface``.
    modes: ClassVar[frozenset[Mode]] = frozenset({"surface"})
    #: Code point → replacement (empty deletes), applied after canon's own folds (case, width, apostrophes).
    fold: Mapping[int, str] = MappingProxyType({})
    #: Whether canonical tokens are their own canonical form.
    idempotent: ClassVar[bool] = True
    #: Texts the conformance kit compares.
    samples: ClassVar[tuple[Sample, ...]] = ()

    def __init__(self, options: CanonOptions) -> None:
        self.options = options

    @classmethod
    def made_as(cls, version: str) -> "type[Language] | None":
        """Return what makes the tokens of a version as they were stored: this class for its own.

        A language whose rules change keeps the earlier ones here: documents can then still be added to what
        was indexed by them.
        """
        return cls if version == cls.version() else None

    @classmethod
    def version(cls) -> str:
        """Return what changes whenever the canonical form of any word may change (rules, dictionary)."""
        return "1"

    @classmethod
    def mode_for(cls, wanted: Mode) -> Mode:
        """Return the strongest mode the language has that is not stronger than the one wanted."""
        for mode in _STRENGTH[_STRENGTH.index(wanted) :]:
            if mode in cls.modes:
                return mode
        return "surface"

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self.mode_for(self.options.mode)

    @abstractmethod
    def canonical(self, word: str) -> str | None:
        """Return the canonical form of one word, or None to drop it.

        Args:
            word: not empty; NFC, lower case, apostrophes as ``'``, letters folded by ``fold``. One character
                where ``unit`` is ``char``.

        Must be pure (the answer is cached for good) and must not raise.
        """
