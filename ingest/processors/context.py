"""Base classes of processors, their options, and the tools that all processors of a pipeline share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, ProcessorError, UnknownLanguage
from shinglefold.ingest.fingerprinter import Fingerprinter, Meter
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_bool, check_known, check_object, check_str, expected
from shinglefold.registry import language_class

#: What a processor returns for a document: the changed document, an error, or None to drop it.
ProcessorResult = Document | Exception | None


@dataclass(slots=True)
class Tools:
    """The objects that all processors of a pipeline share."""

    scheme: Scheme
    canonicalizer: Canonicalizer
    meter: Meter = field(default_factory=Meter)
    #: Seals stored fingerprints; None stores them without a seal.
    seal: Seal | None = None
    fingerprinter: Fingerprinter = field(init=False)

    def __post_init__(self) -> None:
        self.fingerprinter = Fingerprinter(self.scheme, self.canonicalizer, self.meter)

    def warm(self) -> None:
        """Load dictionaries, and compiled code in use, so that forked workers share them."""
        samples = (language_class(ref.code).samples[:1] for ref in self.scheme.languages)
        texts = [sample.a for found in samples for sample in found]
        self.canonicalizer.hash_batch(texts)
        if self.fingerprinter.is_compiled:
            self.fingerprinter.fingerprint(texts)
            self.meter.take()

    def language(self, code: object) -> str | None:
        """Return a declared language if the scheme has it, else None, which means detection.

        ``ru-RU`` and ``zh_CN`` count as ``ru`` and ``zh``. Languages that the scheme lacks are counted.
        """
        if code is None or code == "":
            return None
        known = self.fingerprinter.languages
        if isinstance(code, str):
            for candidate in (code, code.replace("_", "-").split("-")[0].lower()):
                if candidate in known:
                    return candidate
        self.meter.counts["unknown_language"] += 1
        return None

    def check(self, code: str | None, place: str) -> str | None:
        """Return a language code given as an option; raise ``UnknownLanguage`` if the scheme lacks it."""
        if code is not None and code not in self.fingerprinter.languages:
            raise UnknownLanguage.unknown(f"language (in {place})", code, self.fingerprinter.languages)
        return code


class Options:
    """The options of one processor, taken one by one; ``check_all_taken`` rejects the others."""

    def __init__(self, values: object, place: str) -> None:
        self.place = place
        self._values: dict[str, Any] = dict(check_object(place, values, "an object of options"))
        self._known: set[str] = set()

    def value(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - JSON
        """Take an option of any type; null counts as not given, as on the servers."""
        self._known.add(name)
        found = self._values.pop(name, None)
        return default if found is None else found

    def text(self, name: str, default: str | None = None) -> str:
        """Take a non-empty text; it is required if there is no default."""
        found = self.value(name, default)
        if found is None:
            raise ConfigError(self._missing_message(repr(name)))
        return check_str(self._place_of(name), found)

    def any_text(self, name: str) -> str:
        """Take a required text that may be empty."""
        if not self.has(name):
            raise ConfigError(self._missing_message(repr(name)))
        return check_str(self._place_of(name), self.value(name), empty=True)

    def optional(self, name: str) -> str | None:
        """Take an optional text."""
        return self.text(name) if self.has(name) else self.value(name)

    def has(self, name: str) -> bool:
        """Return whether an option is given and not null."""
        return self._values.get(name) is not None

    def flag(self, name: str, default: bool) -> bool:
        """Take true or false."""
        found = self.value(name, default)
        check_bool(self._place_of(name), found)
        return bool(found)

    def names(self, *aliases: str) -> tuple[str, ...]:
        """Take one field name or a list of them, under exactly one of these option names."""
        given = [alias for alias in aliases if self.has(alias)]
        if len(given) != 1:
            wanted = " or ".join(repr(alias) for alias in aliases)
            raise ConfigError(
                f"{self.place}: give exactly one of {wanted}" if given else self._missing_message(wanted)
            )
        self._known.update(aliases)
        found = self.value(given[0])
        names = found if isinstance(found, list) else [found]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise expected(self._place_of(given[0]), "a field's name or a list of names", found)
        return tuple(names)

    def _missing_message(self, names: str) -> str:
        return f"{self.place}: the option {names} is required"

    def check_all_taken(self) -> None:
        """Reject options that were not taken; the error names the nearest known one."""
        check_known(f"option (in {self.place})", self._values, tuple(self._known))

    def _place_of(self, name: str) -> str:
        return f"{self.place}: {name!r}"


class DocumentProcessor(ABC):
    """A processor that changes one document at a time.

    ``type``: its name in pipelines. ``stage``: the stage of the run to which its time is added, if any.
    """

    type: ClassVar[str]
    stage: ClassVar[str] = ""

    def __init__(self, options: Options, tools: Tools) -> None:
        self.tools = tools

    def apply(self, documents: Sequence[Document]) -> list[ProcessorResult]:
        """Return the result for each document, or the error that it caused."""
        results: list[ProcessorResult] = []
        with self.tools.meter.stage(self.stage) if self.stage else nullcontext():
            for document in documents:
                try:
                    results.append(self._one(document))
                except ProcessorError as error:
                    results.append(error)
        return results

    @abstractmethod
    def _one(self, document: Document) -> Document:
        """Return the changed document, or raise ``ProcessorError``."""


class FieldProcessor(DocumentProcessor):
    """A processor that replaces the value of one field.

    Options: ``field``, ``target_field`` (default the field), ``ignore_missing`` (false).
    """

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.field = options.text("field")
        self.target = options.text("target_field", self.field)
        self.ignore_missing = options.flag("ignore_missing", False)


def has_value(values: Iterable[object], wanted: object) -> bool:
    """Return whether a value is among JSON values; see ``equal_values``."""
    return any(equal_values(one, wanted) for one in values)


def equal_values(one: object, other: object) -> bool:
    """Return whether two JSON values are equal; true is not 1, unlike in Python, as on the servers."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_values, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            equal_values(value, other[name]) for name, value in one.items()
        )
    return isinstance(one, bool) == isinstance(other, bool) and one == other
