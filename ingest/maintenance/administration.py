"""What setting up needs of an engine beyond the ``Engine`` contract."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from shinglefold.contracts import JSON


@runtime_checkable
class Mappable(Protocol):
    """An engine whose mappings can grow in place."""

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index a name, alias or pattern means; ``IndexMissing`` for a name."""
        ...

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index and replace its ``_meta``; what is there can't be changed."""
        ...


@runtime_checkable
class Templated(Protocol):
    """An engine with component and index templates: what new indices are made from."""

    def component_template(self, name: str) -> JSON | None:
        """Return ``{"template": …}``, or None where there is none of this name."""
        ...

    def put_component_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace a component template."""
        ...

    def index_templates(self) -> dict[str, JSON]:
        """Return every index template by name: ``{"index_patterns": …, "composed_of": …}``."""
        ...

    def put_index_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace an index template."""
        ...
