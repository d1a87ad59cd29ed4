"""Writers that are killed at random moments while they add near-copies through gates of their own."""

import faulthandler
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from support.gate.copies import near_copies
from support.gate.windows import die_in

from shinglefold.contracts.engine import Engine
from shinglefold.errors import EngineError
from shinglefold.grouping import Gate, Policy
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import ensure_index

_DEFINITION = {"processors": [{"supershingle": {"fields": ["body"]}}]}
_LEASE = 1.0
_TOGETHER = 4
#: Seconds for a server to come back on a busy machine.
_PATIENCE = 240.0


@dataclass(frozen=True)
class Trial:
    """One run: classes of near-copies, added by writers of which some are killed.

    Attributes:
        strike: kills the server, too, and restarts it, ``strikes`` times at random moments.
        windows: further moments at which one writer each is killed, see ``die_in``.
    """

    open_engine: Callable[[], Engine]
    index: str
    pipeline: Pipeline
    policy: Policy
    seed: int
    classes: int = 12
    copies: int = 6
    writers: int = 8
    kills: int = 6
    strike: Callable[[], None] | None = None
    strikes: int = 0
    together: int = _TOGETHER
    windows: Sequence[str] = ()

    def run(self) -> dict[str, int]:
        """Add all, and return how many documents of each class were accepted."""
        rng = random.Random(self.seed)
        documents = near_copies(self.pipeline, self.classes, self.copies, self.seed)
        engine = self.open_engine()
        ensure_index(engine, self.index, replace(self.pipeline.recipe(), groups=True))
        engine.close()
        self._write([documents[number :: self.writers] for number in range(self.writers)], rng)
        return self._counted({one["id"]: one["body"] for one in documents})

    def _write(self, shares: Sequence[Sequence[dict[str, Any]]], rng: random.Random) -> None:
        context = multiprocessing.get_context("fork")
        # Without a lock: a writer that is killed while it holds one stops all. Each has a place of its own.
        done = context.Array("i", len(shares), lock=False)
        windows = rng.sample(self.windows, len(self.windows))
        fatal: list[Any] = []

        def start(number: int) -> Any:
            window = windows.pop() if windows else None
            process = context.Process(target=self._add, args=(shares[number], done, number, window))
            process.start()
            if window is not None:
                fatal.append(process)
            return process

        running = {number: start(number) for number in range(len(shares))}
        # Each falls when so much of the work is done, wherever the writers then are.
        number = sum(map(len, shares))
        falls = [(rng.random() * 0.8, "writer") for _ in range(self.kills)]
        falls += [(rng.random() * 0.8, "server") for _ in range(self.strikes)]
        falls.sort()
        planned = len(falls)
        while running:
            time.sleep(rng.uniform(0.002, 0.02))
            for at, process in list(running.items()):
                if process.exitcode is None:
                    continue
                assert process.exitcode in (0, -signal.SIGKILL), f"writer {at}: {process.exitcode}"
                del running[at]
                if process.exitcode:
                    # Whoever comes in its place begins some documents before, not knowing which were let in.
                    running[at] = start(at)
            alive = [process for process in running.values() if process.exitcode is None]
            if alive and falls and sum(done) >= falls[0][0] * number:
                _, what = falls.pop(0)
                if what == "writer":
                    os.kill(rng.choice(alive).pid or 0, signal.SIGKILL)
                else:
                    assert self.strike is not None
                    self.strike()
        assert len(falls) <= planned // 2, "the writers were done before enough of them were killed"
        fell = sum(process.exitcode == -signal.SIGKILL for process in fatal)
        # Who lets nothing in comes to no window.
        assert fell >= len(self.windows) // 3, "the writers were done before enough of them came to a window"

    def _add(self, share: Sequence[dict[str, Any]], done: Any, number: int, window: str | None) -> None:
        """Add documents, and repeat that while the server is unavailable."""
        if window is not None:
            die_in(window, passes=1)
        _say_where_it_hangs()
        engine = _insisted(self.open_engine)
        gate = _insisted(lambda: Gate(engine, self.index, self.policy, pipeline=self.pipeline, lease=_LEASE))
        first = max(0, done[number] - 2 * self.together)
        for begin in range(first, len(share), self.together):
            _say_where_it_hangs()
            batch = share[begin : begin + self.together]
            for verdict in _insisted(lambda batch=batch: gate.add_all(batch)):  # type: ignore[misc]
                assert verdict.status in ("accepted", "refused"), verdict
            done[number] = max(done[number], begin + len(batch))
        _say_where_it_hangs()
        _insisted(gate.close)
        engine.close()

    def _counted(self, bodies: dict[str, str]) -> dict[str, int]:
        engine = self.open_engine()
        hits = self._swept(engine)
        # Nothing is half there, and what is there is as it was given.
        assert all("digest" in hit["_source"]["_dedup"] for hit in hits), hits
        assert {hit["_id"]: hit["_source"]["body"] for hit in hits}.items() <= bodies.items()
        engine.close()
        return dict(Counter(hit["_id"].split("-")[0] for hit in hits))

    def _swept(self, engine: Engine) -> list[Any]:
        """Return the documents once the remains of killed writers were cleared."""
        end = time.monotonic() + 2 * _LEASE + 0.2 if engine.can.seq_no else 0.0
        with Gate(engine, self.index, self.policy, pipeline=self.pipeline, lease=_LEASE) as gate:
            while True:
                over = time.monotonic() > end
                gate.sweep()
                engine.refresh(self.index)
                answer = engine.search(self.index, {"size": 10_000, "track_total_hits": True})
                hits: list[Any] = answer["hits"]["hits"]
                assert answer["hits"]["total"]["value"] == len(hits)
                if over or all("digest" in hit["_source"]["_dedup"] for hit in hits):
                    return hits
                time.sleep(0.1)


def _say_where_it_hangs() -> None:
    """End this process with the traceback of each thread, unless this is called again in time."""
    faulthandler.dump_traceback_later(1.5 * _PATIENCE, exit=True)


def _insisted(call: Callable[[], Any]) -> Any:
    """Repeat a call until the server answers; an outage of minutes is no restart."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except EngineError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def make_pipeline() -> Pipeline:
    """Return the pipeline of the trials: one language, so that writers start at once."""
    from shinglefold.registry import make_scheme

    return Pipeline.from_json(_DEFINITION, make_scheme(codes=["any", "en"]))


def seeds(here: int, in_ci: int) -> range:
    """Return the seeds to try: as many as the environment asks for, else more of them in CI."""
    otherwise = in_ci if os.environ.get("CI", "").lower() == "true" else here
    return range(int(os.environ.get("SHINGLEFOLD_GATE_SEEDS", otherwise)))
