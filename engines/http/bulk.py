"""Bulk through a client's helper: what a server is too busy for is sent again, what it refuses comes back."""

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from shinglefold.contracts.engine import BulkFailure, BulkResult
from shinglefold.engines.http.errors import (
    BUSY,
    block_remedy,
    closed_remedy,
    field_remedy,
    reason,
    unseen_remedy,
)
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.runtime.backoff import Backoff, never

Action = Mapping[str, Any]
#: A client's ``streaming_bulk`` over some actions: for each in order whether it was done, and the answer.
Helper = Callable[[Sequence[dict[str, Any]]], Iterator[tuple[bool, Mapping[str, Any]]]]

#: Actions sent together: as many as a block has documents at most. A request is cut at ``BYTES`` besides.
CHUNK = 1_000
BYTES = 8 * 1024 * 1024
#: The status and the reason of what a server says to have done, and did not: its own pipeline dropped it.
DROPPED, DROPPED_REASON = 400, "the index's own pipeline dropped it"


class Malformed(Exception):
    """A request refused as a whole because of something in it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Item:
    """An action as given and as sent."""

    given: Action
    sent: dict[str, Any]


_Busy = tuple[_Item, BulkFailure]


@dataclass(slots=True)
class Bulk:
    """One bulk call.

    Args:
        helper: raises ``EngineUnavailable`` where the server is busy or silent, ``Malformed`` where it
            refuses a request as a whole, and other ``EngineError`` where going on is of no use.
        exists: tells whether there is an index; a server would make a missing one up as it guesses.
    """

    helper: Helper
    backoff: Backoff
    exists: Callable[[str], bool]
    _indexed: int = 0
    _written_over: int = 0
    _renamed: Counter[str] = field(default_factory=Counter)
    _failures: list[BulkFailure] = field(default_factory=list)
    _known: dict[str, bool] = field(default_factory=dict)
    _error: EngineError | None = None

    def run(self, actions: Iterable[Action]) -> BulkResult:
        """Send actions in order, each until it is done or finally refused.

        Raises:
            EngineError: the server can't be reached or does not let us in, and nothing was done before. Later
                what is left is returned as failures instead, with status 503 or 403.
        """
        for chunk in chunks(actions):
            items = [_Item(action, with_id(action)) for action in chunk if self._sendable(action)]
            if self._error:
                self._give_up([self._left(item, self._error) for item in items])
            elif items:
                self._settle(items)
        return BulkResult(self._indexed, tuple(self._failures), self._written_over, dict(self._renamed))

    def _sendable(self, action: Action) -> bool:
        index = action.get("_index")
        if not isinstance(index, str) or not index:
            self._failures.append(BulkFailure(action, 400, "_index is missing"))
            return False
        if index not in self._known:
            self._known[index] = self.exists(index)
        if not self._known[index]:
            why = f"index_not_found_exception: no such index {index!r}; create it first"
            self._failures.append(BulkFailure(action, 404, why))
        return self._known[index]

    def _settle(self, items: Sequence[_Item]) -> None:
        busy = self._attempt(items)
        for delay in self.backoff.delays():
            if not busy or self._is_final():
                break
            self.backoff.wait(delay, never)
            self._error = None
            busy = self._attempt([item for item, _ in busy])
        if busy:
            self._give_up(busy)

    def _is_final(self) -> bool:
        return self._error is not None and not isinstance(self._error, EngineUnavailable)

    def _attempt(self, items: Sequence[_Item]) -> list[_Busy]:
        """Send items once and book those that are settled; return the others."""
        busy: list[_Busy] = []
        done = 0
        try:
            answers = self.helper([item.sent for item in items])
            for (ok, answer), item in zip(answers, items, strict=True):
                busy += self._book(item, ok, answer)
                done += 1
        except Malformed as error:
            busy += self._halve(items[done:], error)
        except EngineError as error:
            self._error = error
            busy += [self._left(item, error) for item in items[done:]]
        return busy

    def _book(self, item: _Item, ok: bool, answer: Mapping[str, Any]) -> list[_Busy]:
        if ok:
            # Looked at once: this is done for each document there is.
            ((verb, told),) = answer.items()
            if (result := told.get("result")) == "noop" and was_dropped(answer):
                self._failures.append(BulkFailure(item.given, DROPPED, DROPPED_REASON, dropped=True))
                return []
            self._indexed += 1
            if result == "updated" and verb == "index":
                self._written_over += 1
            if (index := told.get("_index")) != item.sent["_index"]:
                self._renamed[index] += 1
            return []
        failure = failed(item.given, answer)
        if failure.status in BUSY:
            return [(item, failure)]
        self._failures.append(failure)
        return []

    def _halve(self, items: Sequence[_Item], error: Malformed) -> list[_Busy]:
        """Find the items a request was refused for, by sending halves of it."""
        if len(items) == 1:
            self._failures.append(BulkFailure(items[0].given, error.status, error.reason))
            return []
        middle = len(items) // 2
        return self._attempt(items[:middle]) + self._attempt(items[middle:])

    def _give_up(self, busy: Sequence[_Busy]) -> None:
        if self._error and not self._indexed and not self._failures:
            raise self._error
        self._failures += [failure for _, failure in busy]

    def _left(self, item: _Item, error: EngineError) -> _Busy:
        return item, BulkFailure(item.given, 503 if isinstance(error, EngineUnavailable) else 403, str(error))


def chunks(actions: Iterable[Action]) -> Iterator[list[Action]]:
    """Yield actions in order, ``CHUNK`` at a time, and no document twice in one chunk.

    So an action that is tried again can't overtake a later one on the same document.
    """
    chunk: list[Action] = []
    seen: set[tuple[object, ...]] = set()
    for action in actions:
        routing = action.get("routing", action.get("_routing"))
        key = (action.get("_index"), str(action.get("_id")), routing)
        if len(chunk) == CHUNK or (action.get("_id") is not None and key in seen):
            yield chunk
            chunk, seen = [], set()
        chunk.append(action)
        seen.add(key)
    if chunk:
        yield chunk


def with_id(action: Action) -> dict[str, Any]:
    """Return an action that has an ``_id``: trying it again after a silence can't make a second document."""
    sent = dict(action)
    if sent.get("_id") is None and sent.get("_op_type", "index") in ("index", "create"):
        sent["_id"] = base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()
    return sent


def was_dropped(answer: Mapping[str, Any]) -> bool:
    """Tell whether an item that was done stored nothing; that an update changes nothing is no such case."""
    verb, told = next(iter(answer.items()))
    return verb != "update" and told.get("result") == "noop"


def failed(action: Action, answer: Mapping[str, Any]) -> BulkFailure:
    """Return the failure an item of a bulk answer tells: ``{"index": {"status": …, "error": …}}``."""
    told = next(iter(answer.values()))
    status = told.get("status", 500)
    why = reason({"error": told["error"]}) if "error" in told else str(told.get("result", "refused"))
    if remedy := field_remedy(why):
        why = f"{why}. {remedy}"
    if remedy := unseen_remedy(why):
        # No matter of this document: so it will be for all.
        return BulkFailure(action, 403, f"{why}. {remedy}")
    if remedy := closed_remedy(why):
        why = f"{why}. {remedy}"
    if remedy := block_remedy(why):
        # One for want of disk space comes as "too many requests" (429), but lasts until someone makes room.
        return BulkFailure(action, 403, f"{why}. {remedy}")
    return BulkFailure(action, status if isinstance(status, int) else 500, why)


_KEYS = frozenset(("_op_type", "_index", "_id", "_source"))
_VERBS = frozenset(("index", "create"))


def are_ready(actions: Sequence[Action]) -> bool:
    """Tell whether all actions write documents given as bytes, and say no more than where to."""
    return all(
        type(action.get("_source")) is bytes
        and type(action.get("_id")) is str
        and action.get("_op_type", "index") in _VERBS
        and action.keys() <= _KEYS
        for action in actions
    )


def as_texts(actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Return actions as the clients' helpers take them: JSON as text."""
    return [
        {**action, "_source": source.decode()}
        if isinstance(source := action.get("_source"), bytes)
        else dict(action)
        for action in actions
    ]


def bodies(actions: Sequence[Action], most: int) -> Iterator[bytes]:
    """Yield the bodies of requests for actions that ``are_ready``, in order.

    Args:
        most: bytes of a body; a document that is larger goes alone.
    """
    heads: dict[tuple[str, str], str] = {}
    pieces: list[bytes] = []
    size = 0
    for action in actions:
        verb, index, source = action.get("_op_type", "index"), action["_index"], action["_source"]
        head = heads.get((verb, index))
        if head is None:
            head = heads[verb, index] = f'{{"{verb}":{{"_index":{quoted(index)},"_id":'
        line = f"{head}{quoted(action['_id'])}}}}}\n".encode()
        length = len(line) + len(source) + 1
        if pieces and size + length > most:
            yield b"".join(pieces)
            pieces, size = [], 0
        pieces += (line, source, b"\n")
        size += length
    if pieces:
        yield b"".join(pieces)


def told(answer: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Yield of each action whether it was done, and what the server says of it, as the helpers do."""
    for item in answer["items"]:
        (result,) = item.values()
        yield 200 <= result.get("status", 500) < 300, item
