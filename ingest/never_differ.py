"""What copies must have in common: classes of words, and fields of the document."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from shinglefold.canon.facts import WordClass, facts_of
from shinglefold.canon.segmentation import Cuttable
from shinglefold.contracts.engine import Document
from shinglefold.documents import plain_text, values_at
from shinglefold.errors import ConfigError
from shinglefold.options.validation import check_strings

#: The classes of words that ``never_differ`` may name.
WORD_CLASSES: tuple[str, ...] = get_args(WordClass)
#: Names a field that has the name of a class of words, as on the servers.
_SOURCE = "_source."
_MOST = 100


@dataclass(frozen=True, slots=True)
class NeverDiffer:
    """Facts by which documents differ, however similar their texts are.

    ``classes``: of words, see ``canon.facts.WordClass``. ``fields``: fields whose values must be equal; case,
    width and spaces in them do not matter, and no value differs from any value.
    """

    classes: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Any, place: str = "never_differ") -> "NeverDiffer":  # noqa: ANN401 - JSON
        """Read a list of names: classes of words, and fields. ``_source.numbers`` is a field ``numbers``.

        Raises:
            ConfigError: it is no list of names, or one is nearly that of a class.
        """
        names = check_strings(place, [given] if isinstance(given, str) else given, _MOST)
        for name in names:
            _check_name(place, name)
        classes = tuple(sorted({name for name in names if name in WORD_CLASSES}))
        fields = {name.removeprefix(_SOURCE) for name in names if name not in WORD_CLASSES}
        return cls(classes, tuple(sorted(fields)))

    def __bool__(self) -> bool:
        return bool(self.classes or self.fields)

    @property
    def names(self) -> list[str]:
        """The names that ``parse`` reads."""
        return [*self.classes, *(f"{_SOURCE}{one}" if _class_meant(one) else one for one in self.fields)]

    def facts(self, texts: Sequence[Cuttable], documents: Sequence[Document]) -> list[str] | None:
        """Return the facts of documents as a fingerprint stores them; None if nothing is named."""
        if not self:
            return None
        stated = [
            [f"{name}={_joined(values_at(document, name))}" for name in self.fields] for document in documents
        ]
        return facts_of(texts, self.classes, stated)


def _check_name(place: str, name: str) -> None:
    """Refuse a name that would protect nothing: a class in another spelling, or nothing at all."""
    if not name.strip():
        raise ConfigError(f"{place}: an empty name; classes of words are {', '.join(WORD_CLASSES)}")
    meant = _class_meant(name)
    if meant and meant != name:
        raise ConfigError(
            f"{place}: {name!r} is no class of words; did you mean {meant!r}? A field of this name is "
            f"{_SOURCE + name!r}"
        )


def _class_meant(name: str) -> str:
    """Return the class of words that a name is, in any spelling; "" if it is none."""
    return next((one for one in WORD_CLASSES if one.rstrip("s") == name.casefold().rstrip("s")), "")


def _joined(values: Sequence[object]) -> str:
    return "\0".join(sorted(map(plain_text, values)))
