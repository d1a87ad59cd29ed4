"""Worker processes that sign documents, so that a large bulk does not stop searches."""

import asyncio
import contextvars
import logging
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import lru_cache, partial
from multiprocessing.connection import wait
from typing import Any

from shinglefold.errors import EngineUnavailable
from shinglefold.examples import articles
from shinglefold.gateway.indices import SignedIndex
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.writing.worker_pool import cores, elide_texts, keep_loaded, restore_texts
from shinglefold.model.recipe import FIELD
from shinglefold.registry import codes_with_any, make_scheme

_log = logging.getLogger("shinglefold.gateway")
#: How long the thread of a pool may take to end after its processes.
_ENDING_SECONDS = 5.0
_Documents = Sequence[tuple[str | None, Any]]


class Signers:
    """Runs slow work of writes: signing in processes, everything else in threads.

    Args:
        processes: 0 to sign in threads.
        languages: whose dictionaries a process loads at its start; None for all that are installed.
    """

    def __init__(self, processes: int, languages: Sequence[str] | None = None) -> None:
        self.threads = ThreadPoolExecutor(cores() + 2, "shinglefold-writes")
        self._processes, self._languages = processes, languages
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor | None:
        if not self._processes:
            return None
        # Not forked: a child would keep the connections of callers open.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self._processes, context, _prepare, (self._languages,))
        # Starts the first of them before the first bulk; others start as bulks need them.
        pool.submit(os.getpid)
        return pool

    async def run(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
        """Return what a function returns.

        Raises:
            EngineUnavailable: a process died, and nothing was signed.
        """
        loop, job = asyncio.get_running_loop(), _job_of(function)
        if job is None or self._pool is None:
            context = contextvars.copy_context()
            return await loop.run_in_executor(self.threads, context.run, function)
        pool = self._pool
        try:
            made = await loop.run_in_executor(pool, _sign, *job)
        except BrokenProcessPool as error:
            _log.error("a process that signs documents died")
            if self._pool is pool:
                self._pool = self._new_pool()
            raise EngineUnavailable(
                "a process that signs documents died, perhaps out of memory; nothing was stored: try again, "
                "or send less at once"
            ) from error
        documents = [document for _, document in job[1]]
        return list(map(_restore_document, made, documents))

    def close(self) -> None:
        """End the threads and the processes."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        if self._pool is not None:
            # They have nothing to clean up, and one that has just started would be waited for.
            processes = list((self._pool._processes or {}).values())  # noqa: SLF001 - there is no other way
            manager: Any = self._pool._executor_manager_thread  # noqa: SLF001 - typed otherwise
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            # While it ends, the interpreter can't: it would write to a pipe that is closed meanwhile.
            if manager is not None:
                manager.join(_ENDING_SECONDS)


def _job_of(function: Callable[[], Any]) -> tuple[bytes, _Documents] | None:
    """Return the arguments of ``_sign`` if a function signs documents."""
    if not isinstance(function, partial):
        return None
    index = getattr(function.func, "__self__", None)
    if not isinstance(index, SignedIndex) or function.func.__name__ != "sign":
        return None
    return pickle.dumps((index.name, index.recipe, index.seal, index.stored_in)), function.args[0]


def _sign(index: bytes, documents: _Documents) -> list[Outcome | str]:
    """Return what ``SignedIndex.sign`` returns, without the texts that the parent has."""
    made = _index(index).sign(documents)
    return [
        one if isinstance(one, str) else elide_texts(one, document)
        for one, (_, document) in zip(made, documents, strict=True)
    ]


def _restore_document(outcome: Outcome | str, document: Any) -> Outcome | str:  # noqa: ANN401 - JSON
    return outcome if isinstance(outcome, str) else restore_texts(outcome, document)


@lru_cache(16)
def _index(pickled: bytes) -> SignedIndex:
    return SignedIndex(*pickle.loads(pickled))  # noqa: S301 - of the parent process


def _prepare(languages: Sequence[str] | None) -> None:
    """Ignore signals in a new process, end it with its parent, and load the dictionaries."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # An error here would end the pool; signing tells it, where it matters.
    with suppress(Exception):
        scheme = make_scheme(codes=codes_with_any(languages))
        index = SignedIndex("", Pipeline.from_json(default_definition(FIELD), scheme).recipe(FIELD), None, "")
        # One of each kind loads what signing needs, as all of them would in twice the time.
        each = {(article["lang"], article["format"]): article for article in articles()}
        documents = [(None, article) for article in each.values()]
        index.sign(documents)
        threading.Thread(target=_load_compiled_code, args=(index, documents), daemon=True).start()
    keep_loaded()


def _load_compiled_code(index: SignedIndex, documents: _Documents) -> None:
    """Load the compiled code to which signing switches after many texts, or compile it.

    A bulk would wait for it, in all processes at once: for ten seconds the first time on a machine.
    """
    with suppress(Exception):
        index.pipeline.tools.fingerprinter.compile()
        index.sign(documents)
