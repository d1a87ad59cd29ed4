"""Linkages, the rules by which groups grow; separate from schemes, because help must load nothing heavy."""

from collections.abc import Mapping
from typing import Literal, cast

Linkage = Literal["leader", "connected"]
#: The linkage wherever none is named, and of indices that note none.
LINKAGE: Linkage = "leader"
#: What makes a group, by linkage.
LINKAGES: Mapping[str, str] = {
    "leader": "every member resembles the original of its group",
    "connected": "chains of copies are one group",
}


def noted_linkage(grouping: Mapping[str, object]) -> Linkage:
    """Return the linkage that the rules of an index note."""
    return cast("Linkage", grouping.get("linkage", LINKAGE))


def linkage_note(linkage: Linkage) -> dict[str, str]:
    """Return the note that an index stores about a linkage: {} for the default."""
    return {} if linkage == LINKAGE else {"linkage": linkage}


def linkage_phrase(linkage: str) -> str:
    """Return a linkage and what it means in words; "" if it is not known."""
    return f"{linkage}: {LINKAGES[linkage]}" if linkage in LINKAGES else ""
