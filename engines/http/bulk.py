"""Bulk requests through a client: retries while the server is busy, failures as values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from shinglefold.contracts.engine import BUSY, BulkFailure, BulkResult
from shinglefold.documents import with_id
from shinglefold.engines.http.errors import (
    block_remedy,
    closed_remedy,
    field_remedy,
    field_security_remedy,
    reason,
)
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.runtime.backoff import Backoff, never

Action = Mapping[str, Any]
_CONFLICT = 409
#: Sends some actions, and yields for each whether it was done, and the answer.
Helper = Callable[[Sequence[Action]], Iterator[tuple[bool, Mapping[str, Any]]]]

#: The most actions sent together: as many as a block has. A request is also limited to ``BYTES``.
CHUNK = 1_000
BYTES = 8 * 1024 * 1024
#: Status and reason of an action that the index's own pipeline dropped, although the server reports success.
DROPPED, DROPPED_REASON = 400, "the index's own pipeline dropped it"


class Malformed(Exception):
    """A request that was refused as a whole because of one of its actions."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Item:
    """An action, and the form in which it is sent."""

    given: Action
    sent: Action


_Busy = tuple[_Item, BulkFailure]


@dataclass(slots=True)
class Bulk:
    """One bulk call.

    Args:
        helper: raises ``EngineUnavailable`` if the server is busy or silent, ``Malformed`` if it refuses a
            request as a whole, and another ``EngineError`` if retries are useless.
        exists: returns whether an index exists; a server would create a missing one with guessed mappings.
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
        """Send actions in order, each until it is done or refused for good.

        Raises:
            EngineError: the server can't be reached or refuses us, and nothing was done before. After the
                first result the remaining actions are returned as failures with status 503 or 403 instead.
        """
        for chunk in chunks(actions):
            items = [_Item(action, with_id(action)) for action in chunk if self._sendable(action)]
            if self._error:
                self._give_up([self._not_sent(item, self._error) for item in items])
            elif items:
                self._send_until_done(items)
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

    def _send_until_done(self, items: Sequence[_Item]) -> None:
        busy = self._attempt(items)
        for retry in range(self.backoff.retries):
            if not busy or self._is_final():
                break
            self.backoff.wait(self.backoff.delay(retry), never)
            self._error = None
            busy = self._attempt([item for item, _ in busy])
        if busy:
            self._give_up(busy)

    def _is_final(self) -> bool:
        return self._error is not None and not isinstance(self._error, EngineUnavailable)

    def _attempt(self, items: Sequence[_Item]) -> list[_Busy]:
        """Send items once, record the results, and return the items to send again."""
        busy: list[_Busy] = []
        done = 0
        try:
            answers = self.helper([item.sent for item in items])
            for (ok, answer), item in zip(answers, items, strict=True):
                busy += self._record(item, ok, answer)
                done += 1
        except Malformed as error:
            busy += self._halve(items[done:], error)
        except EngineError as error:
            self._error = error
            busy += [self._not_sent(item, error) for item in items[done:]]
        return busy

    def _record(self, item: _Item, ok: bool, answer: Mapping[str, Any]) -> list[_Busy]:
        if ok:
            # Read only once, because this runs for every document.
            ((verb, outcome),) = answer.items()
            if (result := outcome.get("result")) == "noop" and was_dropped(answer):
                self._failures.append(BulkFailure(item.given, DROPPED, DROPPED_REASON, dropped=True))
                return []
            self._indexed += 1
            if result == "updated" and verb == "index":
                self._written_over += 1
            if (index := outcome.get("_index")) != item.sent["_index"]:
                self._renamed[index] += 1
            return []
        failure = failure_of(item.given, answer)
        if failure.status in BUSY:
            return [(item, failure)]
        if failure.status == _CONFLICT and item.given.get("_id") is None:
            # Nobody else has this id: a request whose answer was lost stored the document.
            self._indexed += 1
            return []
        self._failures.append(failure)
        return []

    def _halve(self, items: Sequence[_Item], error: Malformed) -> list[_Busy]:
        """Find the items for which a request was refused, by sending its halves."""
        if len(items) == 1:
            self._failures.append(BulkFailure(items[0].given, error.status, error.reason))
            return []
        middle = len(items) // 2
        return self._attempt(items[:middle]) + self._attempt(items[middle:])

    def _give_up(self, busy: Sequence[_Busy]) -> None:
        if self._error and not self._indexed and not self._failures:
            raise self._error
        self._failures += [failure for _, failure in busy]

    def _not_sent(self, item: _Item, error: EngineError) -> _Busy:
        return item, BulkFailure(item.given, 503 if isinstance(error, EngineUnavailable) else 403, str(error))


def chunks(actions: Iterable[Action]) -> Iterator[list[Action]]:
    """Yield actions in order, ``CHUNK`` at a time, with no document twice in one chunk.

    So a retry can't overtake a later action on the same document.
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


def was_dropped(answer: Mapping[str, Any]) -> bool:
    """Return whether a successful item stored nothing. An update that changes nothing does not count."""
    verb, outcome = next(iter(answer.items()))
    return verb != "update" and outcome.get("result") == "noop"


def failure_of(action: Action, answer: Mapping[str, Any]) -> BulkFailure:
    """Return the failure in an item of a bulk answer: ``{"index": {"status": …, "error": …}}``."""
    outcome = next(iter(answer.values()))
    status = outcome.get("status", 500)
    why = reason({"error": outcome["error"]}) if "error" in outcome else str(outcome.get("result", "refused"))
    if remedy := field_remedy(why):
        why = f"{why}. {remedy}"
    if remedy := field_security_remedy(why):
        # Not this document's fault: all others will fail, too.
        return BulkFailure(action, 403, f"{why}. {remedy}")
    if remedy := closed_remedy(why):
        why = f"{why}. {remedy}"
    if remedy := block_remedy(why):
        # A full disk is reported as "too many requests" (429), but retries do not help.
        return BulkFailure(action, 403, f"{why}. {remedy}")
    return BulkFailure(action, status if isinstance(status, int) else 500, why)


_KEYS = frozenset(("_op_type", "_index", "_id", "_source", "routing"))
_VERBS = frozenset(("index", "create"))


def can_be_joined(action: Action) -> bool:
    """Return whether the lines of an action can be joined unchanged: a document as bytes, no options."""
    return (
        type(action.get("_source")) is bytes
        and type(action.get("_id")) is str
        and action.get("_op_type", "index") in _VERBS
        and type(action.get("routing", "")) is str
        and action.keys() <= _KEYS
    )


def bulk_bodies(
    actions: Sequence[Action], most: int, expand: Callable[[dict[str, Any]], Any], dumps: Callable[[Any], Any]
) -> Iterator[tuple[bytes, int]]:
    """Yield the bodies of bulk requests for actions, in order, each with the number of its actions.

    Args:
        most: the bytes of a body; a larger document gets a separate request.
        expand: a client's ``expand_action``: returns the header of an action, and the rest if it has any.
        dumps: writes JSON as the client does.
    """
    heads: dict[tuple[str, str], str] = {}
    pieces: list[bytes] = []
    size = count = 0
    for action in actions:
        if can_be_joined(action):
            verb, index, source = action.get("_op_type", "index"), action["_index"], action["_source"]
            head = heads.get((verb, index))
            if head is None:
                head = heads[verb, index] = f'{{"{verb}":{{"_index":{quoted(index)},"_id":'
            routing = f',"routing":{quoted(action["routing"])}' if "routing" in action else ""
            lines = f"{head}{quoted(action['_id'])}{routing}}}}}\n".encode(), source, b"\n"
        else:
            header, rest = expand(dict(action))
            lines = bulk_lines([header] if rest is None else [header, rest], dumps), b"", b""
        length = sum(map(len, lines))
        if pieces and size + length > most:
            yield b"".join(pieces), count
            pieces, size, count = [], 0, 0
        pieces += lines
        size += length
        count += 1
    if pieces:
        yield b"".join(pieces), count


def bulk_lines(values: Iterable[object], dumps: Callable[[Any], Any]) -> bytes:
    """Return the lines of a bulk request. Half a surrogate pair, which no UTF-8 has, is written as an escape.

    Args:
        dumps: writes JSON as the client does; values that are text or bytes are JSON already.
    """
    lines: list[bytes] = []
    for value in values:
        given = isinstance(value, str | bytes)
        text: Any = value if given else dumps(value)
        if isinstance(text, bytes) and not given and b"\xed" in text:
            # The client for Elasticsearch writes half a pair as bytes that begin like this.
            text = text.decode("utf-8", "surrogatepass")
        lines += text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace"), b"\n"
    return b"".join(lines)


def bulk_results(count: int, answer: Mapping[str, Any]) -> list[tuple[bool, Mapping[str, Any]]]:
    """Return for each of some actions whether it was done, and its item in the answer, as the helpers do."""
    results = []
    for _, item in zip(range(count), answer["items"], strict=True):
        (result,) = item.values()
        results.append((200 <= result.get("status", 500) < 300, item))
    return results
