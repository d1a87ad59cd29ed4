"""Documents of several callers on their way through a gate together, and what each caller is told of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.member import Member, Verdict
from shinglefold.groups.gate.protocol.protocol import decide
from shinglefold.groups.gate.protocol.requests import Pause, Request, Steps


@dataclass(slots=True, eq=False)
class Caller:
    """Documents of one caller, and what becomes of them.

    ``job``: what takes them through the gate, once it was begun.
    """

    documents: Sequence[Document]
    verdicts: list[Verdict | None] = field(init=False)
    error: BaseException | None = None
    job: "Job | None" = None

    def __post_init__(self) -> None:
        self.verdicts = [None] * len(self.documents)

    @property
    def done(self) -> bool:
        """Whether there is a verdict on each document, or an error."""
        return self.error is not None or None not in self.verdicts

    def result(self) -> list[Verdict]:
        """Return the verdicts, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        return [one for one in self.verdicts if one is not None]


class Job:
    """Takes the documents of callers through the gate, as far as it goes without waiting for others.

    Whoever waits for somebody else's lease must not keep those waiting that have nothing to do with it: while
    a job pauses, another may go on, as that of another gate would.

    Args:
        cut: cuts documents into batches that are decided one after the other.
        member: returns what is decided about, or what becomes of a document that does not fit at all.
        told: returns a verdict in words.
        shared: whether other gates may be before the same index; else pauses are for nobody's sake.
    """

    def __init__(
        self,
        callers: Sequence[Caller],
        terms: Terms,
        *,
        cut: Callable[[Sequence[Document]], list[list[Document]]],
        member: Callable[[Document], Member | Verdict],
        told: Callable[[Verdict], Verdict],
        shared: bool,
    ) -> None:
        self.callers, self._shared = callers, shared
        self._terms, self._cut, self._member, self._told = terms, cut, member, told
        self._undecided: list[tuple[Member, Caller, int]] = []
        self._steps = self._all()
        for caller in callers:
            caller.job = self

    def until_pause(self, error: BaseException | None = None) -> Steps[int | None]:
        """Go on until others may go on, and return for how many milliseconds; None at the end.

        Args:
            error: what ends the job; it gives back what it keeps first.
        """
        go: Callable[[], Request] = partial(self._steps.send, None)
        if error is not None:
            go = partial(self._steps.throw, error)
        while True:
            try:
                request = go()
            except StopIteration:
                return None
            if isinstance(request, Pause) and self._rests(request):
                return request.milliseconds
            try:
                answer: Any = yield request
            except BaseException as failure:
                go = partial(self._steps.throw, failure)
            else:
                go = partial(self._steps.send, answer)

    def _rests(self, pause: Pause) -> bool:
        """Tell whether others may go on in a pause; between two batches they always may."""
        return not pause.milliseconds or (self._shared and not pause.alone)

    def tell(self) -> None:
        """Tell callers what is decided by now, and durable."""
        waiting: list[tuple[Member, Caller, int]] = []
        for member, caller, place in self._undecided:
            if member.verdict is None:
                waiting.append((member, caller, place))
            else:
                caller.verdicts[place] = self._told(member.verdict)
        self._undecided = waiting

    def fail(self, error: BaseException) -> None:
        """Tell callers that are not done what went wrong.

        Servers have what they answered; what failed may be that an engine of one writer made it durable.
        """
        if self._shared:
            self.tell()
        for caller in self.callers:
            if not caller.done:
                caller.error = error

    def _all(self) -> Steps[None]:
        documents = [document for caller in self.callers for document in caller.documents]
        places = ((caller, at) for caller in self.callers for at in range(len(caller.documents)))
        for number, batch in enumerate(self._cut(documents)):
            if number:
                yield Pause(0)
            if members := self._begun(batch, places):
                yield from decide(members, self._terms)

    def _begun(self, batch: Sequence[Document], places: Iterator[tuple[Caller, int]]) -> list[Member]:
        members: list[Member] = []
        for document in batch:
            caller, place = next(places)
            made = self._member(document)
            if isinstance(made, Member):
                members.append(made)
                self._undecided.append((made, caller, place))
            else:
                caller.verdicts[place] = self._told(made)
        return members
