"""The gate for event loops: the same decisions, awaited."""

import asyncio
import random
import time
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Self

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document, HasConnection, RunsInThreads
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError, EngineUnavailable
from shinglefold.groups.gate.base_gate import Face, canonicalizer_of, check_rules, let_in
from shinglefold.groups.gate.gate import Gate
from shinglefold.groups.gate.group_commit import Caller, Job
from shinglefold.groups.gate.housekeeping import SECONDS, Borne
from shinglefold.groups.gate.opening import Opened, open_gate
from shinglefold.groups.gate.protocol.member import Verdict
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.groups.gate.protocol.protocol import tidy
from shinglefold.groups.gate.stores.server import ServerStore
from shinglefold.ingest import Pipeline
from shinglefold.model.seal import Seal
from shinglefold.runtime.sans_io import run_async


class AsyncGate:
    """A ``Gate`` whose methods are awaited; tasks of one event loop share it, and are decided together.

    A task that is cancelled stops waiting; its documents are decided about all the same. Make one with
    ``await AsyncGate.open(engine, index, policy)``.
    """

    def __init__(self, engine: Any, gate: "Gate | _Awaited") -> None:  # noqa: ANN401 - an awaited engine
        self.engine, self._gate = engine, gate

    @classmethod
    async def open(
        cls,
        engine: Any,  # noqa: ANN401 - an awaited engine
        index: str,
        policy: Policy | None = None,
        *,
        pipeline: Pipeline | None = None,
        seal: Seal | None = None,
        lease: float = 30.0,
    ) -> "AsyncGate":
        """Make the index ready and open a gate before it.

        Args:
            engine: ``AsyncOpenSearchEngine``, ``AsyncElasticsearchEngine`` or ``AsyncEmbeddedEngine``.
            index, policy, pipeline, seal, lease: see ``Gate``.

        Raises:
            ConfigError: the index was not set up for it, or the engine can't do it.
        """
        check_rules(policy, pipeline)
        wanted = policy or Policy()
        if isinstance(engine, RunsInThreads):
            gate = await asyncio.to_thread(
                lambda: Gate(engine.blocking, index, wanted, pipeline=pipeline, seal=seal, lease=lease)
            )
            return cls(engine, gate)
        if not isinstance(engine, HasConnection):
            raise ConfigError(f"{type(engine).__name__} is no engine whose methods are awaited")
        opened = await asyncio.to_thread(
            _opened, engine.connection, index, wanted, seal, lease, canonicalizer_of(pipeline)
        )
        return cls(engine, _Awaited(engine, opened, pipeline, seal))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # As ``Gate`` does.
        with nullcontext() if kind is None else suppress(EngineError):
            await self.close()

    @property
    def policy(self) -> Policy:
        """The rules."""
        return self._gate.policy

    async def add(self, document: Document) -> Verdict:
        """Let a document in and return how; see ``Gate.add``."""
        (verdict,) = await self.add_all([document])
        return let_in(verdict)

    async def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Let documents in as far as the policy does; see ``Gate.add_all``."""
        made = await asyncio.to_thread(self._gate.made, documents)
        admitted = iter(await self.admit([one for one in made if not isinstance(one, Verdict)]))
        return [one if isinstance(one, Verdict) else next(admitted) for one in made]

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints; see ``Gate.admit``."""
        if isinstance(self._gate, Gate):
            return await asyncio.to_thread(self._gate.admit, documents)
        return await self._gate.admit(documents)

    async def refresh(self) -> None:
        """Let searches see what was let in."""
        if isinstance(self._gate, Gate):
            await asyncio.to_thread(self._gate.refresh)
        else:
            await self._gate.refresh()

    async def close(self) -> None:
        """Let searches see what was let in, and take the gate's notes away; again it does nothing."""
        if isinstance(self._gate, Gate):
            await asyncio.to_thread(self._gate.close)
        else:
            await self._gate.close()


class _Awaited(Face):
    """A gate before an index on a server that is asked in an event loop."""

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - an awaited engine
        opened: Opened,
        pipeline: Pipeline | None,
        seal: Seal | None,
    ) -> None:
        super().__init__(opened, pipeline, seal)
        documents = opened.documents(engine, engine.newest)
        self._engine = engine
        self._store = ServerStore(engine, opened.index, opened.intents, documents, opened.read_back)
        shared = opened.shared
        assert shared is not None
        self._shared = shared
        self._waiting: list[Caller] = []
        self._told: dict[int, asyncio.Future[None]] = {}
        self._turn = asyncio.Lock()
        self._deciding: set[asyncio.Task[None]] = set()
        self._begun: asyncio.Task[None] | None = None
        self._refreshing: tuple[asyncio.Task[None], tuple[str, ...]] | None = None
        self._refreshed = self._looked = time.monotonic()
        self._borne = Borne()
        self._closed = False

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints."""
        if not documents:
            return []
        if self._closed:
            raise EngineError(f"this gate before {self.index!r} is closed: open another")
        own = Caller(documents)
        told = self._told[id(own)] = asyncio.get_running_loop().create_future()
        self._waiting.append(own)
        if self._begun is None:
            self._begun = self._task(self._begin())
        try:
            await told
        finally:
            self._told.pop(id(own), None)
        return own.result()

    async def refresh(self) -> None:
        """Let searches see what was let in."""
        async with self._turn:
            with suppress(EngineUnavailable):
                await self._settle_refresh()
            await run_async(tidy(self._shared), self._store.answered)

    async def close(self) -> None:
        """Let what is on its way be decided, and take the gate's notes away."""
        while self._deciding:
            await asyncio.gather(*self._deciding, return_exceptions=True)
        if not self._closed:
            await self.refresh()
            await run_async(self._shared.depart(), self._store.answered)
            self._closed = True

    def _task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._deciding.add(task)
        task.add_done_callback(self._deciding.discard)
        return task

    async def _begin(self) -> None:
        """Decide about all who wait, together, once it is their turn."""
        # Whoever was told a moment ago comes again before the others are decided.
        for _ in range(3):
            await asyncio.sleep(0)
        async with self._turn:
            together, self._waiting = self._waiting, []
            self._begun = None
            job = self.job(together)
            pause = await self._work(job)
        while pause is not None:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5) / 1000)
            async with self._turn:
                pause = await self._work(job)

    async def _work(self, job: Job) -> int | None:
        """Take a job as far as it goes, and tell callers what is decided by then."""
        try:
            await self._look()
            return await run_async(job.until_pause(), self._store.answered)
        except BaseException as error:
            job.fail(error)
            if not isinstance(error, Exception):
                raise
            return None
        finally:
            job.tell()
            for caller in job.callers:
                told = self._told.get(id(caller))
                if caller.done and told is not None and not told.done():
                    told.set_result(None)

    async def _look(self) -> None:
        """Do what is due about once a second; see ``Aside``."""
        try:
            await self._settle_what_is_due()
        except EngineUnavailable as error:
            self._borne.bear(error)
        due = self._refreshing is None and time.monotonic() - self._refreshed > SECONDS
        if due and (rounds := self._shared.settled()):
            self._refreshing = asyncio.create_task(self._engine.refresh(self.index)), rounds

    async def _settle_what_is_due(self) -> None:
        if self._refreshing is not None and self._refreshing[0].done():
            await self._settle_refresh()
            self._borne.done()
            await run_async(self._shared.clean(self._opened.forms), self._store.answered)
        if time.monotonic() - self._looked > SECONDS:
            self._looked = time.monotonic()
            self._opened.check_same(await self._engine.identities(self._opened.names))

    async def _settle_refresh(self) -> None:
        if self._refreshing is None:
            return
        (task, rounds), self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        await task
        self._refreshed = time.monotonic()
        self._shared.seen(rounds)


def _opened(  # noqa: PLR0917 - as ``open_gate``
    connection: Any,  # noqa: ANN401 - how an engine is opened
    index: str,
    policy: Policy,
    seal: Seal | None,
    lease: float,
    canonicalizer: Canonicalizer | None,
) -> Opened:
    engine = open_engine(connection)
    try:
        return open_gate(engine, index, policy, seal, lease, canonicalizer)
    finally:
        engine.close()
