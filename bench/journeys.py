"""How much code three tasks enter: a document indexed, a search folded, a text through the gate.

Counts, at run time, the files of the product that are entered, the functions called in them, and how often
control moves from one file to another. Imports do not count. ``python -m bench journeys``
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

import shinglefold
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping import Gate
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch

_PRODUCT = str(Path(shinglefold.__file__).parent)
_STORED = {"_id": "1", "title": "Мост", "body": "Мост через реку закрыли на ремонт до конца лета."}
_NEW = {"_id": "2", "title": "Парк", "body": "В городском парке открыли новую площадку для детей."}
_QUERY = {"query": {"match": {"title": "мост"}}}


class _Trace:
    """The functions of the product that threads enter, and the moves between its files."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.moves = 0
        self._last = threading.local()

    @property
    def files(self) -> set[str]:
        """The files entered."""
        return {file for file, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note one event of ``sys.setprofile``."""
        code = frame.f_code
        if event != "call" or not _is_function(code):
            return
        self.functions.add((code.co_filename, code.co_qualname))
        if getattr(self._last, "file", code.co_filename) != code.co_filename:
            self.moves += 1
        self._last.file = code.co_filename


def _is_function(code: CodeType) -> bool:
    """Return whether code is a function of the product, not the body of a module or a class."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_filename.startswith(_PRODUCT)


@contextmanager
def _trace(trace: _Trace) -> Iterator[None]:
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def measure() -> list[Row]:
    """Return files, functions and moves of each journey through the library, on the embedded engine."""
    pipeline = Pipeline.from_json(default_definition())
    canonicalizer = Canonicalizer.of(pipeline.scheme)
    with TemporaryDirectory() as folder, closing(EmbeddedEngine(folder, canonicalizer)) as engine:
        rows = [
            _row(
                "a document into an index",
                lambda: index_documents(engine, "site", [_STORED], pipeline, workers=1),
            )
        ]
        search = FoldedSearch(engine, pipeline.scheme)
        rows.append(_row("a search to a folded page", lambda: search.search("site", _QUERY)))
        rows.append(_row("a document through the gate", lambda: _add(engine)))
    return rows


def _add(engine: EmbeddedEngine) -> None:
    with Gate(engine, "site") as gate:
        gate.add(_NEW)


def _row(name: str, journey: Callable[[], object]) -> Row:
    trace = _Trace()
    with _trace(trace):
        journey()
    assert trace.files, "nothing was traced"
    note = f"{len(trace.functions)} functions, {trace.moves} moves between files"
    return Row(name, len(trace.files), "files", note)
