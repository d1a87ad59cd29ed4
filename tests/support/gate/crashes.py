"""Writers that are killed at random moments while they add near-copies through gates of their own."""

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.contracts import Engine
from shinglefold.groups import Gate, Policy
from shinglefold.ingest import Pipeline, ensure_index

_DEFINITION = {"processors": [{"supershingle": {"fields": ["body"]}}]}
_LEASE = 2.0
_TOGETHER = 4


@dataclass(frozen=True)
class Trial:
    """One run: so many classes of so many near-copies, added by writers of whom some are killed."""

    open_engine: Callable[[], Engine]
    index: str
    pipeline: Pipeline
    policy: Policy
    seed: int
    classes: int = 12
    copies: int = 6
    writers: int = 8
    kills: int = 6

    def run(self) -> dict[str, int]:
        """Add all, and return how many documents of each class were let in."""
        rng = random.Random(self.seed)
        engine = self.open_engine()
        ensure_index(engine, self.index, replace(self.pipeline.recipe(), groups=True))
        # Made before the writers are, who would all make it at once.
        Gate(engine, self.index, self.policy, pipeline=self.pipeline).close()
        engine.close()
        documents = self._documents(rng)
        shares = [documents[number :: self.writers] for number in range(self.writers)]
        self._write(shares, rng)
        return self._counted()

    def _documents(self, rng: random.Random) -> list[dict[str, Any]]:
        documents = []
        for number in range(self.classes):
            words = [f"w{rng.randrange(5000)}" for _ in range(120)]
            for copy in range(self.copies):
                edited = list(words)
                for _ in range(copy):
                    edited[rng.randrange(len(edited))] = f"edit{rng.randrange(5000)}"
                documents.append({"id": f"{number}-{copy}", "body": " ".join(edited)})
        rng.shuffle(documents)
        return documents

    def _write(self, shares: Sequence[Sequence[dict[str, Any]]], rng: random.Random) -> None:
        context = multiprocessing.get_context("fork")

        def start(number: int) -> Any:
            process = context.Process(target=self._add, args=(shares[number],))
            process.start()
            return process

        running = {number: start(number) for number in range(len(shares))}
        kills = self.kills
        while running:
            time.sleep(rng.uniform(0.02, 0.3))
            for number, process in list(running.items()):
                if process.exitcode is None:
                    continue
                assert process.exitcode in (0, -signal.SIGKILL), f"writer {number}: {process.exitcode}"
                del running[number]
                if process.exitcode:
                    # Whoever comes in its place adds everything again.
                    running[number] = start(number)
            alive = [process for process in running.values() if process.exitcode is None]
            if kills and alive:
                os.kill(rng.choice(alive).pid or 0, signal.SIGKILL)
                kills -= 1

    def _add(self, share: Sequence[dict[str, Any]]) -> None:
        engine = self.open_engine()
        with Gate(engine, self.index, self.policy, pipeline=self.pipeline, lease=_LEASE) as gate:
            for begin in range(0, len(share), _TOGETHER):
                for verdict in gate.add_all(share[begin : begin + _TOGETHER]):
                    assert verdict.status in ("accepted", "refused"), verdict
        engine.close()

    def _counted(self) -> dict[str, int]:
        time.sleep(_LEASE)
        engine = self.open_engine()
        with Gate(engine, self.index, self.policy, pipeline=self.pipeline) as gate:
            gate.sweep()
        engine.refresh(self.index)
        answer = engine.search(self.index, {"size": 10_000, "_source": ["dedup.digest", "dedup.pending"]})
        hits = answer["hits"]["hits"]
        # Nothing is half there.
        assert all("digest" in hit["_source"]["dedup"] for hit in hits), hits
        engine.close()
        return dict(Counter(hit["_id"].split("-")[0] for hit in hits))


def make_pipeline() -> Pipeline:
    """Return the pipeline of the trials: one language, so that writers start at once."""
    from shinglefold.registry import make_scheme

    return Pipeline.from_json(_DEFINITION, make_scheme(codes=["any", "en"]))


def seeds(otherwise: int) -> range:
    """Return the seeds to try: as many as asked for by the environment."""
    return range(int(os.environ.get("SHINGLEFOLD_GATE_SEEDS", otherwise)))
