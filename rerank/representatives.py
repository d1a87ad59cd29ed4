"""Representative selectors: which hit of a group to show, built in and from plugins."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.documents import plain_text
from shinglefold.errors import ConfigError, ShinglefoldError
from shinglefold.registry import REPRESENTATIVES, load_plugin
from shinglefold.rerank.hits import Hit, field_values, moment
from shinglefold.rerank.request.fold_options import Preference


class Candidate(NamedTuple):
    """A hit that may represent its group: its rank, its number of shingles, the hit itself."""

    rank: int
    shingles: int
    hit: Hit


@dataclass(frozen=True, slots=True)
class RepresentativeSelector:
    """A cost function: the candidate with the least cost is shown, on ties the better ranked.

    ``fields`` are fetched with the window into ``hit["fields"]``; they need doc values (keyword, number,
    date).
    """

    cost: Callable[[Candidate], Any]
    fields: tuple[str, ...] = ()


def load_selectors(preferences: Iterable[Preference]) -> tuple[RepresentativeSelector, ...]:
    """Return the selectors of a request, in order of weight.

    A plugin is an entry point of the group ``shinglefold.representatives``: a function from ``Preference``
    to ``RepresentativeSelector``.

    Raises:
        ConfigError: a selector is unknown, lacks its field, or its plugin fails.
    """
    return tuple(_factory(preference.name)(preference) for preference in preferences)


def choose(selectors: Sequence[RepresentativeSelector], candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate to show: the least by the first selector, then by the second …, then by rank."""
    costs = [(*(selector.cost(one) for selector in selectors), one.rank) for one in candidates]
    try:
        return candidates[min(range(len(costs)), key=costs.__getitem__)]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a representative selector has costs that can't be compared: {error}") from error


def _factory(name: str) -> Callable[[Preference], RepresentativeSelector]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    make = load_plugin(REPRESENTATIVES, "representative selector", name, _BUILT_IN)
    return lambda preference: _plugin_selector(name, make, preference)


def _plugin_selector(
    name: str, make: Callable[[Preference], object], preference: Preference
) -> RepresentativeSelector:
    """Return a plugin's selector; its errors name the plugin."""

    def guarded(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever a plugin returns
        try:
            return work()
        except ShinglefoldError:
            raise
        except Exception as error:
            raise ConfigError(
                f"the plugin of the representative selector {name!r} fails: {error!r}"
            ) from error

    selector = guarded(lambda: make(preference))
    if not isinstance(selector, RepresentativeSelector):
        raise ConfigError(
            f"the plugin of the representative selector {name!r} returns {type(selector).__name__}, "
            "expected a RepresentativeSelector"
        )
    return replace(selector, cost=lambda one: guarded(lambda: selector.cost(one)))


def _by_date(preference: Preference, sign: int) -> RepresentativeSelector:
    field = _field(preference)

    def cost(one: Candidate) -> tuple[bool, float]:
        dates = map(moment, field_values(one.hit, field))
        costs = [sign * when for when in dates if when is not None]
        return not costs, min(costs, default=0.0)

    return RepresentativeSelector(cost, (field,))


def _prefer(preference: Preference) -> RepresentativeSelector:
    field = _field(preference)
    if not preference.values:
        raise ConfigError(
            f'prefer needs values, best first, such as "prefer:{field}=example.org,example.com"'
        )
    positions = {value: place for place, value in reversed(list(enumerate(preference.values)))}

    def cost(one: Candidate) -> int:
        spellings = {text for value in field_values(one.hit, field) for text in _spellings(value)}
        return min((positions.get(text, len(positions)) for text in spellings), default=len(positions))

    return RepresentativeSelector(cost, (field,))


def _spellings(value: object) -> tuple[str, ...]:
    """Return a value as text, as users may write it: 5.0 or 5, True or true."""
    if isinstance(value, bool):
        return str(value), str(value).lower()
    return str(value), plain_text(value)


def _shortest_url(preference: Preference) -> RepresentativeSelector:
    field = preference.field or "url"

    def cost(one: Candidate) -> tuple[bool, int]:
        urls = field_values(one.hit, field)
        return not urls, min((len(str(url)) for url in urls), default=0)

    return RepresentativeSelector(cost, (field,))


def _https_first(preference: Preference) -> RepresentativeSelector:
    field = preference.field or "url"
    return RepresentativeSelector(
        lambda one: not any(str(url).lower().startswith("https:") for url in field_values(one.hit, field)),
        (field,),
    )


def _field(preference: Preference) -> str:
    if not preference.field:
        raise ConfigError(f'{preference.name} needs a field, such as "{preference.name}:published"')
    return preference.field


_BUILT_IN: Mapping[str, Callable[[Preference], RepresentativeSelector]] = MappingProxyType(
    {
        "rank": lambda _: RepresentativeSelector(lambda one: one.rank),
        "newest": partial(_by_date, sign=-1),
        "oldest": partial(_by_date, sign=1),
        "longest": lambda _: RepresentativeSelector(lambda one: -one.shingles),
        "prefer": _prefer,
        "shortest_url": _shortest_url,
        "https_first": _https_first,
    }
)
