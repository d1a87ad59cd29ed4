"""A trial of a mutant: tests in a process of its own, into which the changed module is imported.

Nothing is written: neither a mutant that is left behind nor one that others run can come of it.
"""

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from math import ceil
from pathlib import Path
from time import perf_counter
from types import CodeType

import pytest
from hypothesis import HealthCheck, Phase, settings
from support.mutation.mutants import Mutant

_ROOT = Path(__file__).resolve().parents[3]
_FORK = multiprocessing.get_context("fork")
#: A mutant hangs when it has used so many times the seconds, and so many for its start, of the processor; or
#: so many times these have gone by, in which a busy machine lets others go first.
PATIENCE, START, BUSY = 5, 40, 8
_MEMORY = 12 << 30
_FILE = 1 << 30
#: What takes long to import is imported once, before the processes part; nothing of shinglefold is.
_HEAVY = (
    *("numpy", "nltk", "pymorphy3", "pymorphy3.analyzer", "opencc", "selectolax.parser", "xxhash", "tantivy"),
    *("rapidfuzz", "hypothesis.strategies", "hypothesis.internal.conjecture.engine", "click", "rich.console"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended: ``killed``, ``survived``, ``hung`` or ``untested``."""

    word: str
    seconds: float
    tests: int


def prepare() -> None:
    """Import what is shared, and have property tests neither shrink nor differ from run to run.

    Some tests have texts from ``bench``, which stands beside them, wherever the trials are begun.
    """
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    for name in _HEAVY:
        with suppress(ImportError):
            import_module(name)
    phases = (Phase.explicit, Phase.generate)
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, suppress_health_check=slow, deadline=None
    )
    settings.load_profile("mutants")


def try_out(mutant: Mutant | None, tests: list[str], seconds: float) -> Outcome:
    """Run tests with a mutant in place, or with none.

    Args:
        mutant: What is changed.
        tests: Their names, in the order in which they run.
        seconds: How long they take, unchanged.
    """
    if not tests:
        return Outcome("untested", 0.0, 0)
    begin = perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        process = _FORK.Process(target=_run, args=(mutant, tests, folder, _limit(seconds)))
        process.start()
        process.join(BUSY * _limit(seconds))
        hung = process.is_alive()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    hung = hung or process.exitcode == -signal.SIGXCPU
    word = "hung" if hung else "survived" if process.exitcode == 0 else "killed"
    return Outcome(word, perf_counter() - begin, len(tests))


class _Chosen:
    """Keeps the chosen tests and whole files, in their order, but the tests of a file together."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {name: rank for rank, name in enumerate(tests)}
        self.files = {name.partition("::")[0]: rank for rank, name in reversed([*enumerate(tests)])}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if self._place(item) is not None]
        items[:] = sorted(kept, key=self._place)

    def _place(self, item: pytest.Item) -> tuple[int, int] | None:
        file = item.nodeid.partition("::")[0]
        rank = self.rank.get(item.nodeid, self.rank.get(file))
        return None if rank is None else (self.files[file], rank)


def _limit(seconds: float) -> int:
    return ceil(START + PATIENCE * seconds)


def _run(mutant: Mutant | None, tests: list[str], folder: str, limit: int) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
    # What is compiled is known on disk by its file and its bytes without constants: a mutant would be taken
    # for what was compiled before, and its code by others for theirs.
    os.environ["NUMBA_CACHE_DIR"] = str(Path(folder, "compiled"))
    said = os.open(os.environ.get("MUTATION_SAID", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(_ROOT)
    if mutant:
        _replace(mutant)
    chosen = _Chosen(tests)
    arguments = ["-x", "-q", "-p", "no:cacheprovider", *chosen.files]
    code = pytest.main(arguments, plugins=[chosen])
    # What a mutant has left running must not keep the process.
    sys.stdout.flush()
    os._exit(int(code))


def _replace(mutant: Mutant) -> None:
    changed = mutant.mutated()
    assert changed is not None
    unchanged = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        if name == mutant.module:
            return compile(changed, self.path, "exec", dont_inherit=True)
        return unchanged(self, name)

    SourceFileLoader.get_code = get_code
