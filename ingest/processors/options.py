"""The options of one processor, read from its JSON and checked: what is left over is unknown."""

from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.options.validation import check_bool, check_known, check_object, check_str, expected


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
