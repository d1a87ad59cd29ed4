"""Profiles: what a kind of content needs, as sets of other options under one name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.options.validation import check_choice


class Profile(NamedTuple):
    """The options of a kind of content.

    ``never_differ``: what copies must have in common, as in the pipeline. ``decision``: options of the
    scheme's ``Decision``. ``dedup``: defaults for ``ext.dedup`` of searches.
    """

    never_differ: tuple[str, ...] = ()
    decision: Mapping[str, Any] = MappingProxyType({})
    dedup: Mapping[str, Any] = MappingProxyType({})


#: ``pages``: articles and manuals, the defaults. ``products``: cards of shops (figures: docs/quality.md).
#: ``chunks``: passages for a language model, which cites all their sources. ``messages``: posts and mail that
#: are passed on with small changes, each copy of another.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "pages": Profile(),
        "products": Profile(("numbers", "letters", "names"), {"min_resemblance": 0.4}),
        "chunks": Profile(("numbers",), {}, {"members": {"size": 20}}),
        "messages": Profile((), {}, {"linkage": "connected", "verify": "text"}),
    }
)


def profile_of(name: str) -> Profile:
    """Return a profile; that of no name has no options.

    Raises:
        ConfigError: there is none of this name.
    """
    if name == "":
        return Profile()
    check_choice("profile", name, tuple(PROFILES))
    return PROFILES[name]
