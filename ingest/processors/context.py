"""What processors are made from: the scheme, one fingerprinter for all of them, and the meter."""

from dataclasses import dataclass, field
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.ingest.fingerprinter import Fingerprinter, Meter
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_bool, check_known, check_object, check_str, expected
from shinglefold.registry import language_class


@dataclass(slots=True)
class Tools:
    """Shared by the processors of a pipeline."""

    scheme: Scheme
    canonicalizer: Canonicalizer
    meter: Meter = field(default_factory=Meter)
    #: Seals the fingerprints that are stored; None leaves them without a seal.
    seal: Seal | None = None
    fingerprinter: Fingerprinter = field(init=False)

    def __post_init__(self) -> None:
        self.fingerprinter = Fingerprinter(self.scheme, self.canonicalizer, self.meter)

    def warm(self) -> None:
        """Load the dictionaries, and compiled code in use, now, so that forked workers share them."""
        samples = (language_class(ref.code).samples[:1] for ref in self.scheme.languages)
        texts = [sample.a for found in samples for sample in found]
        self.canonicalizer.hash_batch(texts)
        if self.fingerprinter.is_compiled:
            self.fingerprinter.fingerprint(texts)
            self.meter.take()

    def expect(self, characters: int) -> None:
        """Load compiled code where so many characters are to come that it pays, before workers are forked."""
        if self.fingerprinter.expect(characters):
            self.warm()

    def language(self, code: object) -> str | None:
        """Return the language a document declares, or None (detect it) where it is none of the scheme's.

        ``ru-RU`` and ``zh_CN`` count as ``ru`` and ``zh``. A declared language nobody knows is counted, the
        document is not lost.
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
        """Return a language code given as an option.

        Raises:
            UnknownLanguage: it is none of the scheme's.
        """
        if code is not None and code not in self.fingerprinter.languages:
            raise UnknownLanguage.unknown(f"language (in {place})", code, self.fingerprinter.languages)
        return code


class Options:
    """Options to be taken one by one; ``done`` refuses those nobody took."""

    def __init__(self, values: object, place: str) -> None:
        self.place = place
        self._values: dict[str, Any] = dict(check_object(place, values, "an object of options"))
        self._known: set[str] = set()

    def _take(self, name: str, default: object) -> Any:  # noqa: ANN401 - JSON
        self._known.add(name)
        return self._values.pop(name, default)

    def value(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - JSON
        """Take an option of any type."""
        return self._take(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text that must not be empty; without a default it is required."""
        found = self._take(name, default)
        if found is None:
            raise ConfigError(f"{self.place}: the option {name!r} is required")
        return check_str(self._named(name), found)

    def any_text(self, name: str) -> str:
        """Take a text that may be empty, and must be given."""
        if not self.has(name):
            raise ConfigError(self._lacks(repr(name)))
        return check_str(self._named(name), self._take(name, None), empty=True)

    def optional(self, name: str) -> str | None:
        """Take a text that may be left out."""
        return self.text(name) if self.has(name) else self._take(name, None)

    def has(self, name: str) -> bool:
        """Tell whether an option is given (null counts as not)."""
        return self._values.get(name) is not None

    def flag(self, name: str, default: bool) -> bool:
        """Take true or false."""
        found = self._take(name, default)
        check_bool(self._named(name), found)
        return bool(found)

    def names(self, *aliases: str) -> tuple[str, ...]:
        """Take one field name or a list of them, under the first of these option names that is given."""
        given = [alias for alias in aliases if self.has(alias)]
        if len(given) != 1:
            wanted = " or ".join(repr(alias) for alias in aliases)
            raise ConfigError(f"{self.place}: give exactly one of {wanted}" if given else self._lacks(wanted))
        self._known.update(aliases)
        found = self._take(given[0], None)
        names = found if isinstance(found, list) else [found]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise expected(self._named(given[0]), "a field's name or a list of names", found)
        return tuple(names)

    def _lacks(self, wanted: str) -> str:
        return f"{self.place}: the option {wanted} is required"

    def items(self, name: str) -> list[Any]:
        """Take a list, by default empty."""
        found = self._take(name, [])
        if not isinstance(found, list):
            raise expected(self._named(name), "a list", found)
        return found

    def done(self) -> None:
        """Refuse what nobody took.

        Raises:
            ConfigError: an option is unknown, with the nearest name and the place.
        """
        check_known(f"option (in {self.place})", self._values, tuple(self._known))

    def _named(self, name: str) -> str:
        return f"{self.place}: {name!r}"
