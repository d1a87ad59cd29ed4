"""``signed``: actions of ``helpers.bulk`` with fingerprints, for bulks that another program sends."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.documents import json_type
from shinglefold.engines.http.connection import product_of_client
from shinglefold.errors import ConfigError, InputError, ShinglefoldError
from shinglefold.gateway.bulks.items import BulkItem
from shinglefold.gateway.dialects import encode_body
from shinglefold.gateway.interceptor import Interceptor
from shinglefold.gateway.rest import RestRequest, Steps, read_value, warn, warn_stale
from shinglefold.ingest.pipeline.steps import METADATA

#: How many actions are signed at once.
_BLOCK = 200
#: What became of the other actions; ``helpers.bulk`` collects 500 before it sends them.
_ENDED = (
    "signed yielded all actions before this one, and none after it. helpers.bulk sends those of its last "
    "chunk only if it goes on: send the actions again from the first one that is not stored"
)
#: The most names in the path of a value that an error names.
_DEEPEST = 20


def signed(client: Any, actions: Any, index: str | None = None) -> Any:  # noqa: ANN401 - both clients' types
    """Yield actions, in the form of ``helpers.bulk``, with the fingerprints of their documents.

    For bulks that are not sent through the folded client. Actions are read and signed in blocks of 200. What
    is written to indices without a recipe, and deletions, are yielded unchanged. What the pipeline of a
    recipe drops is left out. Updates keep the stored fingerprint, with a warning where they change its text.

    Args:
        client: one of ``fold``. For an asynchronous one the result is iterated by ``async for``.
        actions: an iterable, for an asynchronous client also an asynchronous one.
        index: the index of actions that name none.

    Raises:
        ConfigError: the client is not folded, or documents of an index can't be signed here.
        InputError: a document can't be signed, or not be written; the message names it, and the field.
            Whatever is raised, the actions before were yielded, and none after.
    """
    door = getattr(getattr(client, "transport", None), "shinglefold_door", None)
    if door is None:
        raise ConfigError("client: signed takes one that shinglefold.fold returned: signed(fold(client), …)")
    transport = client.transport
    if product_of_client(door.given) == "opensearch":
        from opensearchpy.helpers import expand_action

        dumps = transport.serializer.dumps
    else:
        from elasticsearch.helpers import expand_action

        dumps = transport.serializers.dumps

    def steps(interceptor: Interceptor, block: Sequence[Any]) -> Steps[list[Any]]:
        try:
            expanded = [_expand(one, expand_action, dumps) for one in block]
            return (yield from _sign(interceptor, expanded, index, door.headers(client)))
        except ShinglefoldError as error:
            if len(block) < 2:
                return [error]
        made: list[Any] = []
        for one in block:
            made += yield from steps(interceptor, [one])
            if made and isinstance(made[-1], ShinglefoldError):
                break
        return made

    made: Any = (_sign_blocks_async if door.awaited else _sign_blocks)(door, client, actions, steps)
    return made


def _sign_blocks(door: Any, client: Any, actions: Iterable[Any], steps: Callable[..., Any]) -> Iterator[Any]:  # noqa: ANN401
    waiting = iter(actions)
    while block := list(islice(waiting, _BLOCK)):
        yield from map(_or_raise, door.drive(client, steps(door.interceptor, block)))


async def _sign_blocks_async(
    door: Any,  # noqa: ANN401
    client: Any,  # noqa: ANN401
    actions: Iterable[Any] | AsyncIterable[Any],
    steps: Callable[..., Any],
) -> AsyncIterator[Any]:
    async for block in _blocks(actions):
        for one in await door.drive(client, steps(door.interceptor, block)):
            yield _or_raise(one)


def _or_raise(action: Any) -> Any:  # noqa: ANN401
    if isinstance(action, ShinglefoldError):
        action.add_note(_ENDED)
        raise action
    return action


async def _blocks(actions: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[list[Any]]:
    if not isinstance(actions, AsyncIterable):
        waiting = iter(actions)
        while block := list(islice(waiting, _BLOCK)):
            yield block
        return
    block = []
    async for action in actions:
        block.append(action)
        if len(block) == _BLOCK:
            yield block
            block = []
    yield block


def _expand(action: Any, expand: Callable[..., Any], dumps: Callable[..., Any]) -> tuple[Any, Any, Any]:  # noqa: ANN401
    """Return an action as it was given, its line, and the bytes of what goes with it.

    Clients also write values that JSON lacks, such as dates.

    Raises:
        InputError: the client can't read the action, or not write it.
    """
    try:
        line, source = expand(action)
    except Exception as error:
        raise InputError(
            f"an action must be an object or a text, as helpers.bulk takes it, not {json_type(action)}"
        ) from error
    try:
        return action, line, None if source is None else encode_body(dumps(source))
    except Exception as error:
        id_ = action.get("_id") if isinstance(action, Mapping) else None
        path, value = _unwritable(source, dumps)
        what = f"the {type(value).__name__} in [{path}]" if path else f"this {type(value).__name__}"
        raise InputError(
            f"document {id_!r} can't be signed: the client can't write {what} as JSON: give another value"
        ) from error


def _unwritable(value: Any, dumps: Callable[..., Any]) -> tuple[str, Any]:  # noqa: ANN401
    """Return the path and the innermost value that a client can't write; deeper ones are not looked at."""

    def fails(one: object) -> bool:
        try:
            dumps(one)
        except Exception:
            return True
        return False

    path: list[str] = []
    while isinstance(value, Mapping | list | tuple) and len(path) < _DEEPEST:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        found = next((one for one in items if fails(one[1])), None)
        if found is None:
            break
        path.append(str(found[0]))
        value = found[1]
    return ".".join(path), value


def _sign(
    interceptor: Interceptor,
    actions: Sequence[tuple[Any, Any, bytes | None]],
    index: str | None,
    headers: JSON,
) -> Steps[list[Any]]:
    """Return actions with fingerprints, or errors, without those that the pipeline drops.

    Each comes as it was given, and as the client reads it: its metadata, and what goes with it.
    """
    items: list[BulkItem] = []
    for _, line, source in actions:
        ((verb, metadata),) = read_value(line).items()
        name = metadata.get("_index", index)
        if name is None:
            raise ConfigError(f"an action names no index: signed(…, index=…), or _index in {metadata!r}")
        lines = [b""] if source is None else [b"", source]
        items.append(BulkItem(verb, metadata, str(name), lines))
    before = [item.lines[-1] for item in items]
    yield from interceptor.bulks.prepare(items, RestRequest("POST", "/_bulk", headers=headers))
    for item in items:
        if item.unread:
            item.refuse("it is not JSON")
    for name in {item.name for item in items if item.gate is not None}:
        warn(f"signed actions are written to {name!r} past its gate, which decides about none of them")
    made = (_outcome(one[0], item, line) for one, item, line in zip(actions, items, before, strict=True))
    return [action for action in made if action is not None]


def _outcome(given: Any, item: BulkItem, line: bytes) -> Any:  # noqa: ANN401 - as the client's helpers take it
    """Return an action to send, or an error; None if the pipeline drops its document."""
    if item.answer is not None:
        found = item.answer[item.verb]
        if "error" not in found:
            return None
        return InputError(
            f"document {item.id!r} for {item.name!r} can't be signed: {found['error']['reason']}"
        )
    if item.update is not None or item.script:
        warn_stale(
            item.name, item.id, "signed actions hold no stored texts: send updates by the folded client"
        )
    action = {"_op_type": item.verb, **item.metadata, "_index": item.name}
    if item.update is not None:
        return {**action, **item.update.body}
    if item.admitted is not None:
        source = {name: one for name, one in item.admitted.items() if name not in (*METADATA, "_op_type")}
        return {**action, "_source": source}
    if item.lines[-1] == line:
        return given
    body = read_value(item.lines[-1])
    return {**action, **body} if item.verb == "update" else {**action, "_source": body}
