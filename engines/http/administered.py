"""Templates and mappings in place: what setting up needs beyond the ``Engine`` contract."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.engines.http.answers import check_given, check_name, plain
from shinglefold.engines.http.engine import HttpEngine


class AdministeredEngine(HttpEngine):
    """An engine that can be set up; the clients name these requests alike."""

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name, an alias or a pattern means.

        Raises:
            IndexMissing: a name without ``*`` means none.
        """
        check_given(pattern)
        with self._asking():
            answer = plain(self._client.indices.get_mapping(index=pattern))
        return {index: dict(entry.get("mappings") or {}) for index, entry in answer.items()}

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace its ``_meta`` where one is given.

        Raises:
            UnsupportedQuery: a field is there already and of another kind.
        """
        check_name(index)
        with self._asking():
            self._client.indices.put_mapping(index=index, body=dict(mappings))

    def component_template(self, name: str) -> JSON | None:
        """Return a component template, or None where there is none of this name."""
        with self._asking():
            if not self._client.cluster.exists_component_template(name=name):
                return None
            answer = plain(self._client.cluster.get_component_template(name=name))
        found: JSON = answer["component_templates"][0]["component_template"]
        return found

    def put_component_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace a component template.

        Raises:
            UnsupportedQuery: the server can't read it, or it does not fit a template made of it.
        """
        with self._asking():
            self._client.cluster.put_component_template(name=name, body=dict(body))

    def index_templates(self) -> dict[str, JSON]:
        """Return every index template by name."""
        with self._asking():
            answer = plain(self._client.indices.get_index_template())
        return {entry["name"]: entry["index_template"] for entry in answer["index_templates"]}

    def put_index_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace an index template.

        Raises:
            UnsupportedQuery: the server can't read it, or another one of its priority matches its indices.
        """
        with self._asking():
            self._client.indices.put_index_template(name=name, body=dict(body))
