"""Administration of indices, mappings and templates; both clients have the same methods for it."""

import operator
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from shinglefold.contracts.engine import JSON, BulkResult, IndexInfo
from shinglefold.engines.http.engine import HttpEngine, retry_when_busy
from shinglefold.engines.http.responses import (
    SETTINGS,
    check_given,
    check_name,
    objects_in,
    read_answer,
)
from shinglefold.errors import (
    EngineUnavailable,
    IndexMissing,
    PermissionDenied,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.runtime.sans_io import run

#: Options that an alias keeps when it moves to another index.
_ALIAS_OPTIONS = ("filter", "index_routing", "search_routing", "is_write_index", "is_hidden")
#: Keys that Elasticsearch adds to templates in answers, and refuses in requests.
_DATES = ("created_date", "modified_date")
#: The most documents deleted with one bulk request.
_DELETED_AT_ONCE = 1_000


class AdminEngine(HttpEngine):
    """An engine with the requests that inspect, replace and set up indices."""

    @property
    def templates(self) -> Self:
        """The server's templates."""
        return self

    def indices(self, pattern: str = "*") -> list[IndexInfo]:
        """Return the indices that a name, alias, data stream or pattern matches, by name.

        Raises:
            IndexMissing: a name without ``*`` matches none.
        """
        check_given(pattern)
        aliases = self._aliases_by_index(pattern)
        stats = self._stats(pattern)
        return [
            IndexInfo(name, *stats.get(name, (None, None)), tuple(sorted(names)))
            for name, names in sorted(aliases.items())
            if pattern.startswith(".") or _is_of_users(name)
        ]

    def _aliases_by_index(self, pattern: str) -> dict[str, JSON]:
        """Return the aliases of each index that a pattern matches.

        The request for aliases does not list the indices of a data stream, so the settings are read, too.
        For a stream OpenSearch answers 404, and Elasticsearch returns the aliases of the stream itself.
        """
        try:
            aliases = self._aliases(pattern, expand_wildcards="open,closed")
        except IndexMissing:
            aliases = {}
        try:
            names = self.index_settings(pattern)
        except PermissionDenied:
            if not aliases:
                raise
            return aliases
        return {name: aliases.get(name, {}) for name in names}

    @retry_when_busy
    def _stats(self, pattern: str) -> dict[str, tuple[int | None, int | None]]:
        options = {"metric": "docs,store", "expand_wildcards": "open,hidden", "forbid_closed_indices": False}
        expected = "indices, each with primaries"
        return self._request(self._client.indices.stats, expected, _counts, index=pattern, **options)

    def check(self, index: str) -> None:
        """Check that an index exists; servers check their files themselves.

        Raises:
            IndexMissing: it does not exist.
        """
        self.all_mappings(index)

    def replace_index(self, index: str, by: str) -> None:
        """Make a name an alias of another index, and delete the index behind the name, in one step.

        Other aliases of the deleted index move to the new one.

        Raises:
            IndexMissing: the index ``by`` does not exist.
            UnsupportedQuery: the name is an alias of several indices.
        """
        check_name(index)
        check_name(by)
        old = self._indices_of(index)
        if list(old) == list(self._aliases(by)):
            return
        if len(old) > 1:
            raise UnsupportedQuery(
                f"{index!r} is an alias of several indices ({', '.join(sorted(old))}): name one of them"
            )
        actions: list[JSON] = [{"remove_index": {"index": name}} for name in old]
        moved = {index: {}, **{alias: options for names in old.values() for alias, options in names.items()}}
        actions += [
            {"add": {"index": by, "alias": alias, **_alias_options(given)}} for alias, given in moved.items()
        ]
        self._change(self._client.indices.update_aliases, body={"actions": actions})

    def delete_by_query(self, index: str, query: Mapping[str, Any]) -> BulkResult:
        """Delete all documents that match a query; see ``Engine.delete_by_query``.

        Raises:
            EngineUnavailable: not all shards answered, so the documents of some would stay.
        """
        check_given(index)
        # With searches and bulk requests, because some servers lack the module for _delete_by_query.
        body = {"query": dict(query), "size": _DELETED_AT_ONCE, "_source": False, "seq_no_primary_term": True}
        body |= self.can.unaltered
        deleted = 0
        self.refresh(index)
        # The next round finds a document again that changed before it could be deleted.
        while deletions := self._deletions(index, body):
            result = self.bulk(deletions)
            deleted += result.indexed
            self.refresh(index)
            if not result.indexed:
                return BulkResult(deleted, result.failures)
        return BulkResult(deleted)

    def _deletions(self, index: str, body: JSON) -> list[JSON]:
        expected = "_shards, timed_out, and hits with _index, _id, _seq_no and _primary_term"
        try:
            answer = self.search(index, body, self.can.newest)
        except WindowTooLarge:
            # The index has a smaller index.max_result_window.
            if body["size"] == 1:
                raise
            body["size"] //= 2
            return self._deletions(index, body)
        return read_answer(answer, self.who, expected, _deletions)

    @retry_when_busy
    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name, alias or pattern matches.

        Raises:
            IndexMissing: a name without ``*`` matches none.
        """
        return run(self._all_mappings_steps(pattern), operator.call)

    @retry_when_busy
    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace its ``_meta`` if one is given.

        Raises:
            UnsupportedQuery: a field exists with another type.
        """
        check_name(index)
        self._change(self._client.indices.put_mapping, index=index, body=dict(mappings))

    @retry_when_busy
    def component_template(self, name: str) -> JSON | None:
        """Return a component template; None if it does not exist."""
        try:
            with self._translate_errors():
                exists = self._client.cluster.exists_component_template(name=name)
        except PermissionDenied:
            # An answer to HEAD is empty. One to GET names the right that is missing.
            exists = True
        if not exists:
            return None
        send = self._client.cluster.get_component_template
        return self._request(send, "component_templates", _component, name=name)

    @retry_when_busy
    def put_component_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace a component template.

        Raises:
            UnsupportedQuery: the server can't read it, or an index template that uses it becomes invalid.
        """
        self._change(self._client.cluster.put_component_template, name=name, body=dict(body))

    @retry_when_busy
    def index_templates(self) -> dict[str, JSON]:
        """Return every index template by name."""
        return self._request(self._client.indices.get_index_template, "index_templates", _index_templates)

    @retry_when_busy
    def put_index_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace an index template.

        Raises:
            UnsupportedQuery: the server can't read it, or another template of its priority matches the same
                indices.
        """
        self._change(self._client.indices.put_index_template, name=name, body=dict(body))

    @retry_when_busy
    def delete_component_template(self, name: str) -> None:
        """Delete a component template.

        Raises:
            UnsupportedQuery: an index template uses it.
        """
        self._change(self._client.cluster.delete_component_template, name=name)

    @retry_when_busy
    def delete_index_template(self, name: str) -> None:
        """Delete an index template."""
        self._change(self._client.indices.delete_index_template, name=name)

    @retry_when_busy
    def resolved_template(self, name: str) -> JSON:
        """Return the settings, mappings and aliases of an index template, with its components."""
        send = self._client.indices.simulate_template
        return self._request(send, "template", lambda answer: dict(answer["template"]), name=name)

    @retry_when_busy
    def legacy_templates(self) -> dict[str, JSON]:
        """Return every legacy template by name."""
        expected = "index_patterns of each template"
        return self._request(self._client.indices.get_template, expected, _legacy_templates)

    @retry_when_busy
    def index_settings(self, pattern: str) -> dict[str, JSON]:
        """Return the flat settings of each index that a name or pattern matches, also of closed indices.

        Raises:
            IndexMissing: a name without ``*`` matches none.
        """
        check_given(pattern)
        options = {"flat_settings": True, "expand_wildcards": "open,closed"}
        read, send = partial(objects_in, "settings"), self._client.indices.get_settings
        return self._request(send, SETTINGS, read, index=pattern, **options)

    @retry_when_busy
    def data_streams(self, pattern: str) -> dict[str, str]:
        """Return the index template of each data stream that a name or pattern matches.

        The result is empty on a server without data streams, and for a name of something else.
        """
        check_given(pattern)
        try:
            send = self._client.indices.get_data_stream
            return self._request(send, "data_streams", _data_streams, name=pattern)
        except (IndexMissing, UnsupportedQuery):
            return {}

    def writes_to(self, name: str) -> tuple[tuple[str, ...], str, str | None]:
        """Return the indices of an alias, the one for new documents, if there is one, and its routing."""
        options = {index: own[name] for index, own in self._indices_of(name).items() if name in own}
        if not options:
            return (name,), name, None
        chosen = [index for index, given in options.items() if given.get("is_write_index")]
        if not chosen and len(options) == 1:
            chosen = [index for index, given in options.items() if given.get("is_write_index") is not False]
        write_index = chosen[0] if chosen else ""
        return tuple(sorted(options)), write_index, options.get(write_index, {}).get("index_routing")

    def _indices_of(self, index: str) -> dict[str, JSON]:
        """Return the indices behind a name, each with its aliases; none if the name does not exist."""
        try:
            return self._aliases(index)
        except IndexMissing:
            return {}

    @retry_when_busy
    def _aliases(self, /, pattern: str, **options: str) -> dict[str, JSON]:
        read, send = partial(objects_in, "aliases"), self._client.indices.get_alias
        return self._request(send, "the aliases of each index", read, index=pattern, **options)


def _without_dates(template: Mapping[str, Any]) -> JSON:
    """Return a template without the dates that Elasticsearch adds and refuses."""
    return {key: value for key, value in template.items() if not key.startswith(_DATES)}


def _component(answer: JSON) -> JSON:
    return _without_dates(answer["component_templates"][0]["component_template"])


def _index_templates(answer: JSON) -> dict[str, JSON]:
    return {entry["name"]: _without_dates(entry["index_template"]) for entry in answer["index_templates"]}


def _legacy_templates(answer: JSON) -> dict[str, JSON]:
    return {
        name: {**template, "index_patterns": template["index_patterns"]} for name, template in answer.items()
    }


def _data_streams(answer: JSON) -> dict[str, str]:
    return {entry["name"]: str(entry.get("template", "")) for entry in answer["data_streams"]}


def _counts(answer: JSON) -> dict[str, tuple[int | None, int | None]]:
    """Return the number of documents and the bytes of each index; None for what can't be read now."""
    counts = {}
    for name, primaries in objects_in("primaries", answer["indices"]).items():
        documents, size = primaries.get("docs"), primaries.get("store")
        counts[name] = (
            int(documents["count"]) if documents else None,
            int(size["size_in_bytes"]) if size else None,
        )
    return counts


def _is_of_users(name: str) -> bool:
    """Return whether an index is a user's. Names with a dot are of plugins, except those of data streams."""
    return not name.startswith(".") or name.startswith(".ds-")


def _alias_options(options: Mapping[str, Any]) -> JSON:
    return {name: options[name] for name in _ALIAS_OPTIONS if name in options}


def _deletions(answer: JSON) -> list[JSON]:
    if answer["_shards"]["failed"] or answer["timed_out"]:
        raise EngineUnavailable("deleting: not all shards answered, so not all was deleted; try again later")
    return [_deletion(hit) for hit in answer["hits"]["hits"]]


def _deletion(hit: JSON) -> JSON:
    action = {
        "_op_type": "delete",
        "_index": hit["_index"],
        "_id": hit["_id"],
        "if_seq_no": hit["_seq_no"],
        "if_primary_term": hit["_primary_term"],
    }
    return {**action, "routing": hit["_routing"]} if "_routing" in hit else action
