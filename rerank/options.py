"""What a request may say about folding: ``ext.dedup`` of a search body, arguments, flags."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from shinglefold.errors import ConfigError

Linkage = Literal["leader", "connected"]
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SECONDS = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0})


@dataclass(frozen=True, slots=True)
class Preference:
    """A policy of choosing whom to show: its name, the field it reads, the values it prefers."""

    name: str
    field: str = ""
    values: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: object) -> "Preference":
        """Read ``"rank"``, ``"newest:published"``, ``"prefer:host=a.org,b.org"`` or the same as JSON.

        As JSON: ``{"newest": "published"}``, ``{"prefer": {"field": "host", "values": ["a.org"]}}``.
        """
        if isinstance(given, str):
            name, _, rest = given.partition(":")
            field, _, values = rest.partition("=")
            return cls(name, field, tuple(part for part in values.split(",") if part))
        if isinstance(given, Mapping) and len(given) == 1:
            ((name, argument),) = given.items()
            if isinstance(argument, str):
                return cls(str(name), argument)
            if isinstance(argument, Mapping):
                _only(f"key of representative {name!r}", argument, ("field", "values"))
                return cls(
                    str(name), str(argument.get("field", "")), _strings("values", argument.get("values", ()))
                )
        raise ConfigError(
            f'representative {given!r}: expected a policy such as "newest:published" or '
            '{"prefer": {"field": "host", "values": ["example.org"]}}'
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """Fold only hits with the same value of a field or, with ``within``, so many seconds apart at most."""

    field: str
    within: float | None = None

    @classmethod
    def parse(cls, given: object) -> "Scope":
        """Read ``"host"``, ``"published:7d"``, ``{"field": "host"}`` or with ``"within": "7d"``."""
        if isinstance(given, str) and given:
            field, _, span = given.partition(":")
            return cls(field, _span(span) if span else None)
        if isinstance(given, Mapping) and isinstance(given.get("field"), str):
            _only("key of scope", given, ("field", "within"))
            return cls(given["field"], _span(given["within"]) if "within" in given else None)
        raise ConfigError(f'scope {given!r}: expected a field, or {{"field": "published", "within": "7d"}}')


@dataclass(frozen=True, slots=True)
class Explain:
    """What to say of each member attached beside the figures.

    ``passages``: the passages its stored text has in common with that of the hit shown, with their places.
    ``fields``: whose text is compared; none takes those the index names, else ``title`` and ``body``.
    """

    passages: bool = True
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.passages, bool):
            raise ConfigError(f"passages: expected true or false, got {self.passages!r}")

    @classmethod
    def parse(cls, given: object) -> "bool | Explain":
        """Read true, false, ``{"passages": true}`` or with ``"fields": ["title", "body"]``."""
        if isinstance(given, bool | Explain):
            return given
        if not isinstance(given, Mapping):
            raise ConfigError(f'explain: expected true, false or {{"passages": true}}, got {given!r}')
        _only("key of explain", given, ("passages", "fields"))
        return cls(given.get("passages", True), _strings("fields", given.get("fields", ())))


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """How to fold the hits of one search.

    ``min_shared``: supershingles a member must share with its representative. None takes 0 where a
    resemblance is asked for: the signatures then decide alone and miss nothing; else the scheme's own.
    ``min_resemblance``, ``min_length_ratio``: 0…1; None takes the scheme's.
    ``linkage``: ``leader``: each member resembles the representative shown; ``connected``: chains count too.
    ``representative``: policies in order of weight; none means the best-ranked is shown.
    ``members``: how many folded hits to attach to each representative; ``member_source``: their ``_source``
    filter in the engines' own forms, None for the request's.
    ``window``: hits read at first; ``max_window``: hits read at most to fill a page.
    ``scope``: fold only within the same host, language or time span.
    ``across_languages``: compare hits of different languages too.
    ``fold``: False shows every hit ("show omitted results").
    ``explain``: say of each member attached why it was folded; an ``Explain`` may show what matches.
    ``cursor``: True begins endless paging, a cursor from an answer goes on; ``renew`` goes on with a cursor
    whose point in time has ended.
    """

    min_shared: int | None = None
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    linkage: Linkage = "leader"
    representative: tuple[Preference, ...] = ()
    members: int = 5
    member_source: Any = None
    window: int = 200
    max_window: int = 1000
    scope: tuple[Scope, ...] = ()
    across_languages: bool = False
    fold: bool = True
    explain: bool | Explain = False
    cursor: bool | str = False
    renew: bool = False

    def __post_init__(self) -> None:
        _whole("min_shared", self.min_shared, 0, 1024, optional=True)
        _share("min_resemblance", self.min_resemblance)
        _share("min_length_ratio", self.min_length_ratio)
        if self.linkage not in get_args(Linkage):
            raise ConfigError.unknown("linkage", str(self.linkage), get_args(Linkage))
        _whole("members", self.members, 0, 1000)
        _whole("window", self.window, 1, 1000)
        _whole("max_window", self.max_window, 1, 10_000)
        for name in ("across_languages", "fold", "renew"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if not isinstance(self.explain, bool | Explain):
            raise ConfigError(f"explain: expected true, false or an Explain, got {self.explain!r}")
        if not isinstance(self.cursor, bool | str):
            raise ConfigError(f"cursor: expected true or a cursor from an answer, got {self.cursor!r}")
        if self.cursor is not False and not self.fold:
            raise ConfigError("a cursor pages through groups: leave it out, or fold")
        if self.window > self.max_window:
            raise ConfigError(
                f"window {self.window} is above max_window {self.max_window}: lower it or raise the cap"
            )

    @classmethod
    def parse(cls, given: Mapping[str, Any], base: "FoldOptions | None" = None) -> "FoldOptions":
        """Read the JSON of ``ext.dedup``; what it does not name is as in ``base``, else the default.

        ``representative`` and ``scope`` have short forms, alone or in a list: see their classes. ``members``
        is a number, or ``{"size": 3, "_source": ["title"]}``.

        Raises:
            ConfigError: an unknown key (the nearest known one is named) or a value that can't be meant.
        """
        if not isinstance(given, Mapping):
            raise ConfigError(f"dedup: expected an object of options, got {given!r}")
        if not given:
            return base or cls()
        known = [f.name for f in fields(cls) if f.name != "member_source"]
        _only("dedup option", given, known)
        values = {
            name: _READERS.get(name, _same)(value) for name, value in given.items() if name != "members"
        }
        return replace(base or cls(), **values, **_members(given["members"]) if "members" in given else {})


def _same(value: Any) -> Any:  # noqa: ANN401 - JSON
    return value


def _each(parse: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...]]:
    def read(given: object) -> tuple[Any, ...]:
        return tuple(parse(one) for one in (given if isinstance(given, list | tuple) else [given]))

    return read


_READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"representative": _each(Preference.parse), "scope": _each(Scope.parse), "explain": Explain.parse}
)


def _members(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"members": given}
    _only("key of members", given, ("size", "_source"))
    found = {"members": given["size"]} if "size" in given else {}
    return found | ({"member_source": given["_source"]} if "_source" in given else {})


def _only(what: str, given: Mapping[str, Any], known: tuple[str, ...] | list[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError.unknown(what, str(name), known)


def _strings(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
        return tuple(given)
    raise ConfigError(f"{name}: expected a list of strings, got {given!r}")


def _span(given: object) -> float:
    match = _SPAN.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise ConfigError(f"within {given!r}: expected a number and one of ms, s, m, h, d, w, such as 7d")
    return float(match[1]) * _SECONDS[match[2]]


def _whole(name: str, value: object, low: int, high: int, optional: bool = False) -> None:
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{name}: expected a whole number of {low} to {high}, got {value!r}")


def _share(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ConfigError(f"{name}: expected a number of 0 to 1, got {value!r}")
