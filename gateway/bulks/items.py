"""The actions of a bulk request, as they are read, answered and sent."""

from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON, Document
from shinglefold.gateway.indices import SignedIndex
from shinglefold.gateway.rest import (
    Operation,
    RestRequest,
    as_text,
    ends_with_newline,
    failure,
    read_actions,
    write_value,
)
from shinglefold.gateway.updates import UpdateRequest


@dataclass(slots=True)
class BulkItem:
    """An action of a bulk request.

    Attributes:
        lines: those that are sent, at first those given.
        index: signs the document; None if its index has no recipe.
        update: a partial update whose fingerprint depends on the stored document.
        answer: the item of the response.
        rounds: how often a conflict is tried again.
        missing: whether the document that is updated, and not inserted, was missing.
        routing: that of the request.
        script: whether a script updates the document, so that its fingerprint is renewed afterwards.
        admitted: the document that a gate decides about.
        unread: whether only the engine may be able to read the document.
        stale: why an update is sent without the fingerprint of its text; "" if it has that, or needs none.
    """

    verb: str
    metadata: JSON
    name: str
    lines: list[bytes]
    index: SignedIndex | None = None
    update: UpdateRequest | None = None
    answer: JSON | None = None
    rounds: int = 0
    missing: bool = False
    routing: str | None = None
    script: bool = False
    admitted: Document | None = None
    unread: bool = False
    stale: str = ""

    @property
    def signer(self) -> SignedIndex:
        """The index, of an item that is signed."""
        assert self.index is not None
        return self.index

    @property
    def gate(self) -> SignedIndex | None:
        """The index whose gate decides about the document."""
        return self.index if self.admitted is not None else None

    @property
    def id(self) -> str | None:
        """The id of the document, if the request names one."""
        return as_text(self.metadata.get("_id"))

    @property
    def route(self) -> str | None:
        """The routing of the document: its own, or that of the request."""
        return as_text(self.metadata.get("routing", self.metadata.get("_routing", self.routing)))

    def answer_value(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return a part of the answer; None if it is missing."""
        return (self.answer or {}).get(self.verb, {}).get(name)

    def reply(self, status: int, body: JSON) -> None:
        """Answer in the engine's shape, without sending the action."""
        self.answer = {self.verb: {"_index": self.name, "_id": self.id, "status": status, **body}}

    def refuse(self, reason: str) -> None:
        """Answer that the document is refused."""
        error = failure(reason)["error"]
        self.reply(400, {"error": {"type": error["type"], "reason": error["reason"]}})

    def send(self, verb: str, metadata: JSON, source: bytes) -> None:
        """Send another action instead of the given one."""
        self.lines = [write_value({verb: metadata}), source]


@dataclass(slots=True)
class BulkSegment:
    """Actions that one request sends: none depends on the result of another.

    ``gate``: the index whose gate decides about all of them, instead of a request.
    """

    gate: SignedIndex | None
    items: list[BulkItem] = field(default_factory=list)
    ids: set[str | None] = field(default_factory=set)
    merged: set[str | None] = field(default_factory=set)

    def takes(self, item: BulkItem) -> bool:
        """Return whether an action can be sent with the others."""
        if item.gate is not self.gate:
            return False
        return item.id not in (self.merged if item.update is None else self.ids)

    def add(self, item: BulkItem) -> None:
        """Add an action, and remember which document it writes."""
        self.items.append(item)
        self.ids.add(item.id)
        if item.update is not None:
            self.merged.add(item.id)


def read_items(operation: Operation, request: RestRequest) -> list[BulkItem] | None:
    """Return the actions of a body; None if it is malformed, which the engine then reports."""
    if not ends_with_newline(request.body):
        return None
    items: list[BulkItem] = []
    try:
        for verb, metadata, lines in read_actions(request.body or b""):
            named = as_text(metadata.get("_index"))
            name = operation.target if named is None else named
            if name is None:
                return None
            items.append(BulkItem(verb, metadata, name, lines, routing=request.parameters.get("routing")))
    except ValueError:
        return None
    return items
