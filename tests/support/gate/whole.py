"""The whole run: many texts, added by writers that are killed, and a record of the results."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from support.gate.crashes import Trial

from bench.table import Row, keep
from shinglefold.contracts.engine import Engine
from shinglefold.grouping import Policy
from shinglefold.ingest import Pipeline

_COPIES, _WRITERS, _KILLS, _STRIKES = 8, 8, 60, 3
_TOGETHER = 20


def texts() -> int:
    """Return how many texts the environment asks for; 0 by default."""
    return int(os.environ.get("SHINGLEFOLD_GATE_TEXTS", "0"))


def run_whole(
    name: str,
    opened: Callable[[], Engine],
    pipeline: Pipeline,
    index: Callable[[str], str],
    strike: Callable[[], None] | None,
) -> None:
    """Run under ``refuse`` and under ``cap``, and keep the results."""
    classes = texts() // _COPIES
    rows = []
    for policy, most in ((Policy("refuse"), 1), (Policy("cap", most=2), 2)):
        killed: dict[str, Any] = {"strike": strike, "strikes": _STRIKES if strike else 0}
        trial = Trial(
            opened,
            index(policy.action),
            pipeline,
            policy,
            seed=1,
            classes=classes,
            copies=_COPIES,
            writers=_WRITERS,
            kills=_KILLS,
            together=_TOGETHER,
            **killed,
        )
        begin = time.monotonic()
        found = trial.run()
        seconds = time.monotonic() - begin
        assert found == {str(number): most for number in range(classes)}
        deaths = f"{_KILLS} kills of them, {killed['strikes']} of the server"
        note = f"{classes * _COPIES:,} texts of {classes:,} classes, {_WRITERS} writers, {deaths}; "
        note += f"{policy.action}: {most} of each class are in; {name}"
        rows.append(Row("near-copies added while writers die", seconds, "s", note))
    keep(f"gate-run-{name}", rows, datetime.now(UTC).date())
