"""Representative policies: which hit of a group to show, built in and from plugins."""

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
class RepresentativePolicy:
    """A cost function: the candidate with the least cost is shown, on ties the better ranked.

    ``fields`` are fetched with the window into ``hit["fields"]``; they need doc values (keyword, number,
    date).
    """

    cost: Callable[[Candidate], Any]
    fields: tuple[str, ...] = ()


def load_policies(preferences: Iterable[Preference]) -> tuple[RepresentativePolicy, ...]:
    """Return the policies of a request, in order of weight.

    A plugin is an entry point of the group ``shinglefold.representatives``: a function from ``Preference``
    to ``RepresentativePolicy``.

    Raises:
        ConfigError: a policy is unknown, lacks its field, or its plugin fails.
    """
    return tuple(_factory(preference.name)(preference) for preference in preferences)


def choose(policies: Sequence[RepresentativePolicy], candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate to show: the least by the first policy, then by the second …, then by rank."""
    costs = [(*(policy.cost(one) for policy in policies), one.rank) for one in candidates]
    try:
        return candidates[min(range(len(costs)), key=costs.__getitem__)]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a representative policy has costs that can't be compared: {error}") from error


def _factory(name: str) -> Callable[[Preference], RepresentativePolicy]:
    if name in BUILT_IN:
        return BUILT_IN[name]
    make = load_plugin(REPRESENTATIVES, "representative policy", name, BUILT_IN)
    return lambda preference: _plugin_policy(name, make, preference)


def _plugin_policy(
    name: str, make: Callable[[Preference], object], preference: Preference
) -> RepresentativePolicy:
    """Return a plugin's policy; its errors name the plugin."""

    def call(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever a plugin returns
        try:
            return work()
        except ShinglefoldError:
            raise
        except Exception as error:
            raise ConfigError(f"the plugin of the representative policy {name!r} fails: {error!r}") from error

    policy = call(lambda: make(preference))
    if not isinstance(policy, RepresentativePolicy):
        raise ConfigError(
            f"the plugin of the representative policy {name!r} returns {type(policy).__name__}, expected a "
            "RepresentativePolicy"
        )
    return replace(policy, cost=lambda one: call(lambda: policy.cost(one)))


def _by_date(preference: Preference, sign: int) -> RepresentativePolicy:
    field = _field(preference)

    def cost(one: Candidate) -> tuple[bool, float]:
        dates = map(moment, field_values(one.hit, field))
        costs = [sign * when for when in dates if when is not None]
        return not costs, min(costs, default=0.0)

    return RepresentativePolicy(cost, (field,))


def _prefer(preference: Preference) -> RepresentativePolicy:
    field = _field(preference)
    if not preference.values:
        raise ConfigError(
            f'prefer needs values, best first, such as "prefer:{field}=example.org,example.com"'
        )
    positions = {value: place for place, value in reversed(list(enumerate(preference.values)))}

    def cost(one: Candidate) -> int:
        spellings = {text for value in field_values(one.hit, field) for text in _spellings(value)}
        return min((positions.get(text, len(positions)) for text in spellings), default=len(positions))

    return RepresentativePolicy(cost, (field,))


def _spellings(value: object) -> tuple[str, ...]:
    """Return a value as text, as users may write it: 5.0 or 5, True or true."""
    if isinstance(value, bool):
        return str(value), str(value).lower()
    return str(value), plain_text(value)


def _shortest_url(preference: Preference) -> RepresentativePolicy:
    field = preference.field or "url"

    def cost(one: Candidate) -> tuple[bool, int]:
        urls = field_values(one.hit, field)
        return not urls, min((len(str(url)) for url in urls), default=0)

    return RepresentativePolicy(cost, (field,))


def _https_first(preference: Preference) -> RepresentativePolicy:
    field = preference.field or "url"
    return RepresentativePolicy(
        lambda one: not any(str(url).lower().startswith("https:") for url in field_values(one.hit, field)),
        (field,),
    )


def _field(preference: Preference) -> str:
    if not preference.field:
        raise ConfigError(f'{preference.name} needs a field, such as "{preference.name}:published"')
    return preference.field


BUILT_IN: Mapping[str, Callable[[Preference], RepresentativePolicy]] = MappingProxyType(
    {
        "rank": lambda _: RepresentativePolicy(lambda one: one.rank),
        "newest": partial(_by_date, sign=-1),
        "oldest": partial(_by_date, sign=1),
        "longest": lambda _: RepresentativePolicy(lambda one: -one.shingles),
        "prefer": _prefer,
        "shortest_url": _shortest_url,
        "https_first": _https_first,
    }
)
