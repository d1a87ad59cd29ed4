"""``signed``: actions of ``helpers.bulk`` with fingerprints, for bulks that another program sends."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.engines.http.connection import product_of_client
from shinglefold.errors import ConfigError, InputError
from shinglefold.gateway.bulks.items import BulkItem
from shinglefold.gateway.dialects import encoded
from shinglefold.gateway.interceptor import Interceptor
from shinglefold.gateway.rest import RestRequest, Steps, read_value, warn, warn_stale
from shinglefold.ingest.pipeline.steps import METADATA

#: How many actions are signed at once.
_BLOCK = 200


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
        InputError: a document can't be signed; the message names it. Those before it were yielded.
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
        expanded = []
        for one in block:
            line, source = expand_action(one)
            # Clients also write values that JSON lacks, such as dates.
            expanded.append((one, line, None if source is None else encoded(dumps(source))))
        return _sign(interceptor, expanded, index, door.headers(client))

    made: Any = (_awaited if door.awaited else _blocking)(door, client, actions, steps)
    return made


def _blocking(door: Any, client: Any, actions: Iterable[Any], steps: Callable[..., Any]) -> Iterator[Any]:  # noqa: ANN401
    waiting = iter(actions)
    while block := list(islice(waiting, _BLOCK)):
        yield from map(_or_raise, door.drive(client, steps(door.interceptor, block)))


async def _awaited(
    door: Any,  # noqa: ANN401
    client: Any,  # noqa: ANN401
    actions: Iterable[Any] | AsyncIterable[Any],
    steps: Callable[..., Any],
) -> AsyncIterator[Any]:
    async for block in _blocks(actions):
        for one in await door.drive(client, steps(door.interceptor, block)):
            yield _or_raise(one)


def _or_raise(action: Any) -> Any:  # noqa: ANN401
    if isinstance(action, InputError):
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
