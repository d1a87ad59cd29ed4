"""The options of folding, as ``ext.dedup`` of a search body, arguments or flags give them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, quote
from shinglefold.model.linkage import LINKAGE, Linkage
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_count,
    check_fraction,
    check_int,
    check_known,
    check_name,
    check_number,
    check_options,
    check_strings,
    expected,
)
from shinglefold.rerank.request.arguments import (
    MOST_FIELDS,
    MOST_INNER_HITS,
    MOST_POLICIES,
    MOST_SCOPES,
    MOST_TEXT,
    MOST_VALUES,
    InnerHits,
    check_names,
    read_source_filter,
    seconds,
)

Mode = Literal["window", "server", "native", "auto"]
Facets = Literal["documents", "groups"]
MembersFrom = Literal["results", "index"]
VerifiedBy = Literal["signature", "text"]
OnTrouble = Literal["unfolded", "raise"]
#: Policies that read their field as dates.
BY_DATE = ("newest", "oldest")


@dataclass(frozen=True, slots=True)
class Preference:
    """A representative policy of a request: its name, the field it reads, the values it prefers."""

    name: str
    field: str = ""
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("representative", self.name)
        check_name("field", self.field)
        check_strings(f"values of {self.name}", self.values, MOST_VALUES)

    @classmethod
    def parse(cls, given: object) -> "Preference":
        """Parse ``"rank"``, ``"newest:published"``, ``"prefer:host=a.org,b.org"`` or the same as JSON.

        As JSON: ``{"newest": "published"}``, ``{"prefer": {"field": "host", "values": ["a.org"]}}``.
        """
        if isinstance(given, str):
            name, _, rest = check_name("representative", given, MOST_TEXT).partition(":")
            field, _, values = rest.partition("=")
            return cls(name, field, tuple(part for part in values.split(",") if part))
        if isinstance(given, Mapping) and len(given) == 1:
            ((name, argument),) = given.items()
            if isinstance(argument, str):
                return cls(str(name), argument)
            if isinstance(argument, Mapping):
                check_known(f"key of representative {quote(name)}", argument, ("field", "values"))
                preferred = check_strings("values", argument.get("values", ()), MOST_VALUES)
                return cls(str(name), _name("field", argument.get("field", "")), preferred)
        raise ConfigError(
            f'representative {quote(given)}: expected a policy such as "newest:published" or '
            '{"prefer": {"field": "host", "values": ["example.org"]}}'
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """A field whose value hits must share to fold; with ``within``, at most this many seconds apart."""

    field: str
    within: float | None = None

    def __post_init__(self) -> None:
        check_name("scope", self.field)
        check_number("within (seconds)", self.within, optional=True)

    @classmethod
    def parse(cls, given: object) -> "Scope":
        """Parse ``"host"``, ``"published:7d"``, ``{"field": "host"}`` or the same with ``"within": "7d"``."""
        if isinstance(given, str) and given:
            field, _, span = check_name("scope", given).partition(":")
            return cls(field, seconds(span) if span else None)
        if isinstance(given, Mapping) and isinstance(given.get("field"), str):
            check_known("key of scope", given, ("field", "within"))
            return cls(given["field"], seconds(given["within"]) if "within" in given else None)
        raise ConfigError(
            f'scope {quote(given)}: expected a field, or {{"field": "published", "within": "7d"}}'
        )


@dataclass(frozen=True, slots=True)
class Explain:
    """What an explanation of a member has in addition to the estimates.

    ``passages``: the passages that its stored text shares with that of the representative.
    ``fields``: the fields whose texts are compared; () takes those of the recipe, else ``title`` and
    ``body``.
    """

    passages: bool = True
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_bool("passages", self.passages)
        check_strings("explain fields", self.fields, MOST_FIELDS)

    @classmethod
    def parse(cls, given: object) -> "bool | Explain":
        """Parse true, false, ``{"passages": true}`` or the same with ``"fields": ["title", "body"]``."""
        if isinstance(given, bool | Explain):
            return given
        if not isinstance(given, Mapping):
            raise ConfigError(f'explain: expected true, false or {{"passages": true}}, got {quote(given)}')
        check_known("key of explain", given, ("passages", "fields"))
        return cls(
            given.get("passages", True), check_strings("explain fields", given.get("fields", ()), MOST_FIELDS)
        )


def _check_parsed(name: str, given: object, kind: type) -> None:
    if not isinstance(given, list | tuple) or not all(isinstance(one, kind) for one in given):
        kind_name = kind.__name__
        raise expected(name, f"a tuple of {kind_name}; {kind_name}.parse reads text", given)


def _check_members(options: "FoldOptions") -> None:
    """Check which members of a group are attached to its representative, and in what form."""
    check_int("members", options.members, 0, 1000)
    if not (options.member_filter is None or isinstance(options.member_filter, Mapping)):
        raise ConfigError(f"filter of members: expected a query, got {quote(options.member_filter)}")
    if options.member_filter is not None and options.members_from != "index":
        raise ConfigError(
            'filter of members: those among the results are filtered by the query; add "from": "index"'
        )
    if options.member_source is not None:
        read_source_filter(options.member_source)
    _check_parsed("inner_hits", options.inner_hits, InnerHits)
    if options.inner_hits:
        check_names(options.inner_hits)


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """How to fold the hits of one search.

    ``min_shared``: supershingles that a member must share with its representative. None means 0 if a
    resemblance is required, because signatures then decide alone and miss nothing; else that of the scheme.
    ``min_resemblance``, ``min_length_ratio``: 0…1; None means those of the scheme.
    ``linkage``: with ``leader`` each member resembles its representative; with ``connected`` a chain of
    similar hits is one group.
    ``representative``: policies in order of weight; () shows the best-ranked hit.
    ``members``: how many folded hits to attach to each representative; ``member_source``: their ``_source``
    filter in the engines' own forms; None means that of the request.
    ``window``: hits read at first; ``max_window``: hits read at most to fill a page.
    ``scope``: fold only within the same host, language or time span.
    ``fold``: False shows every hit ("show omitted results").
    ``explain``: explain why each attached member was folded; an ``Explain`` may add the matching passages.
    ``cursor``: True begins endless paging, the cursor of an answer continues it; ``renew`` continues one
    whose point in time has ended.
    ``inner_hits``: members in the engines' own form, with orders and names of their own.
    ``mode``: ``window`` reads the first hits and folds them; ``server`` lets the plugin of the cluster do
    that; ``native`` lets the engine collapse by stored group numbers; ``auto`` takes the first possible of
    native, server and window, and the answer has the mode and the reason.
    ``facets``: ``groups`` adds the number of groups to the buckets of terms aggregations (native only).
    ``members_from``: ``index`` also attaches and counts copies that the query did not find;
    ``member_filter``: a query that these must match.
    ``verify``: with ``text`` the texts decide uncertain pairs of the page; with ``signature`` no texts are
    compared. None compares texts of copies from the index only, which are read anyway.
    ``on_trouble``: if fingerprints can't be read, ``unfolded`` returns the engine's own page and the reason,
    and ``raise`` raises an error. None means what the search was made with.
    ``closed``: requests may set only what ``untrusted`` lets visitors set; no body can set ``closed``.
    """

    min_shared: int | None = None
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    linkage: Linkage = LINKAGE
    representative: tuple[Preference, ...] = ()
    members: int = 5
    member_source: Any = None
    window: int = 200
    max_window: int = 1000
    scope: tuple[Scope, ...] = ()
    fold: bool = True
    explain: bool | Explain = False
    cursor: bool | str = False
    renew: bool = False
    inner_hits: tuple[InnerHits, ...] = ()
    mode: Mode = "window"
    facets: Facets = "documents"
    members_from: MembersFrom = "results"
    member_filter: Mapping[str, Any] | None = None
    verify: VerifiedBy | None = None
    on_trouble: OnTrouble | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_int("min_shared", self.min_shared, 0, 1024, optional=True)
        check_fraction("min_resemblance", self.min_resemblance)
        check_fraction("min_length_ratio", self.min_length_ratio)
        for name, known in _CHOICES.items():
            if name not in _MAY_BE_NONE or getattr(self, name) is not None:
                check_choice(_LABELS.get(name, name), getattr(self, name), get_args(known))
        _check_parsed("representative", self.representative, Preference)
        _check_parsed("scope", self.scope, Scope)
        check_count("representative", self.representative, MOST_POLICIES)
        check_count("scope", self.scope, MOST_SCOPES)
        _check_members(self)
        check_int("window", self.window, 1, 1000)
        check_int("max_window", self.max_window, 1, 10_000)
        for name in ("fold", "renew", "closed"):
            check_bool(name, getattr(self, name))
        if not isinstance(self.explain, bool | Explain):
            raise ConfigError(f"explain: expected true, false or an Explain, got {quote(self.explain)}")
        if not isinstance(self.cursor, bool | str):
            raise ConfigError(f"cursor: expected true or a cursor from an answer, got {quote(self.cursor)}")
        if self.cursor is not False and not self.fold:
            raise ConfigError("a cursor pages through groups: leave it out, or fold")
        if self.window > self.max_window:
            raise ConfigError(
                f"window {self.window} is above max_window {self.max_window}: lower it or raise the cap"
            )

    @property
    def date_fields(self) -> frozenset[str]:
        """The fields whose values are read as dates."""
        near = {scope.field for scope in self.scope if scope.within is not None}
        return frozenset(near | {one.field for one in self.representative if one.name in BY_DATE})

    @classmethod
    def parse(cls, given: Mapping[str, Any], base: "FoldOptions | None" = None) -> "FoldOptions":
        """Parse the JSON of ``ext.dedup``; other options are those of ``base``, else the defaults.

        ``representative`` and ``scope`` have short forms, alone or in a list: see their classes. ``members``
        is a number, or ``{"size": 3, "_source": ["title"]}``.

        Raises:
            ConfigError: an unknown key (the nearest known one is named) or a value that is not valid.
        """
        if not isinstance(given, Mapping):
            raise ConfigError(f"dedup: expected an object of options, got {quote(given)}")
        check_options(base, cls)
        if not given:
            return base or cls()
        check_known("dedup option", given, [f.name for f in fields(cls) if f.name not in _NOT_IN_BODIES])
        if base is not None and base.closed:
            _check_allowed(given)
        values = {
            name: _READERS[name](value) if name in _READERS else value
            for name, value in given.items()
            if name != "members"
        }
        if "members" in given:
            values |= _members(given["members"])
        chosen = replace(base or cls(), **values)
        if base is not None and base.closed:
            _check_caps(chosen, base)
        return chosen

    @classmethod
    def untrusted(cls, given: Mapping[str, Any], base: "FoldOptions | None" = None) -> "FoldOptions":
        """Parse options that a visitor of an application sent; other options are those of ``base``.

        A visitor may set ``fold``, ``members``, ``min_resemblance``, ``min_length_ratio``, ``window``,
        ``max_window``, ``cursor`` and ``renew``; ``members``, ``window`` and ``max_window`` up to those of
        ``base``. Only the application sets fields, scopes, policies and
        explanations. Searches with these options restrict ``ext.dedup`` in the same way.

        Raises:
            ConfigError: an option is reserved for the application, or not valid.
        """
        return cls.parse(given, replace(base or cls(), closed=True))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search: its index, its body without our options, those, and its URL parameters."""

    index: str | None
    body: JSON
    options: FoldOptions
    url: Mapping[str, Any] = field(default_factory=dict)


def may_compare_texts(given: object, base: FoldOptions | None) -> bool:
    """Return whether a page may compare texts, which takes dictionaries, by ``ext.dedup`` and defaults."""
    if isinstance(given, Mapping):
        members = given.get("members")
        if given.keys() & {"explain", "verify"} or (isinstance(members, Mapping) and "from" in members):
            return True
    if base is None:
        return False
    return base.explain is not False or base.verify == "text" or base.members_from == "index"


def _check_allowed(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in VISITORS:
            raise ConfigError(
                f"{quote(name)} is reserved for the application; a request may set {', '.join(VISITORS)}"
            )
    for name in ("from", "filter"):
        if isinstance(given.get("members"), Mapping) and name in given["members"]:
            raise ConfigError(
                f"{name} of members is reserved for the application; a request may set their size"
            )


def _check_caps(chosen: FoldOptions, base: FoldOptions) -> None:
    for name in _CAPPED:
        if getattr(chosen, name) > getattr(base, name):
            raise ConfigError(f"{name}: at most {getattr(base, name)} here, got {getattr(chosen, name)}")


def _list_of(name: str, parse: Callable[[object], Any], most: int) -> Callable[[object], tuple[Any, ...]]:
    def read(given: object) -> tuple[Any, ...]:
        several = given if isinstance(given, list | tuple) else [given]
        check_count(name, several, most)
        return tuple(parse(one) for one in several)

    return read


#: Options without a key of this name in bodies.
_NOT_IN_BODIES = ("member_source", "members_from", "member_filter", "closed")
_CHOICES: Mapping[str, Any] = MappingProxyType(
    {
        "linkage": Linkage,
        "mode": Mode,
        "facets": Facets,
        "members_from": MembersFrom,
        "verify": VerifiedBy,
        "on_trouble": OnTrouble,
    }
)
#: Choices that may be left to the search.
_MAY_BE_NONE = ("verify", "on_trouble")
_LABELS = MappingProxyType({"members_from": "from of members", "verify": "way to verify"})
#: Options that visitors may set; those in ``_CAPPED`` at most to the values of the application.
VISITORS = (
    "fold", "members", "min_resemblance", "min_length_ratio", "window", "max_window", "cursor", "renew",
)  # fmt: skip
_CAPPED = ("members", "window", "max_window")
_READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "representative": _list_of("representative", Preference.parse, MOST_POLICIES),
        "scope": _list_of("scope", Scope.parse, MOST_SCOPES),
        "explain": Explain.parse,
        "inner_hits": _list_of("inner_hits", InnerHits.parse, MOST_INNER_HITS),
    }
)


#: Keys of an object ``members`` → options.
_MEMBERS: Mapping[str, str] = MappingProxyType(
    {"size": "members", "_source": "member_source", "from": "members_from", "filter": "member_filter"}
)


def _members(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"members": given}
    check_known("key of members", given, tuple(_MEMBERS))
    return {_MEMBERS[name]: value for name, value in given.items()}


def _name(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"{what}: expected the name of a field, got {quote(given)}")
    return check_name(what, given)
