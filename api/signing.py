"""Documents with fingerprints and nothing else changed, for indexers of users."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.documents import MISSING, RAW_BUDGET, blocks, get, put, too_long, weight
from shinglefold.errors import InputError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.writing.worker_pool import process_blocks
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.options.validation import expected


def sign_documents(
    pipeline: Pipeline,
    field: str,
    documents: Iterable[Mapping[str, Any]],
    workers: int,
    check: Callable[[], None],
) -> Iterator[Document]:
    """Yield documents with the fingerprints that a pipeline makes of them; see ``FoldedIndex.sign``.

    Args:
        check: called before each block; an exception ends the run.
    """
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    waiting: deque[list[tuple[Document, str]]] = deque()

    def readable_blocks() -> Iterator[list[Document]]:
        for block in blocks(map(_fields, documents), weight, RAW_BUDGET):
            check()
            reasons = [too_long(one) or overwrite_refusal(one, field) for one in block]
            bare = [without_fingerprint(one, field) for one in block]
            waiting.append(list(zip(bare, reasons, strict=True)))
            yield [one for one, reason in waiting[-1] if not reason]

    number = 0
    with closing(process_blocks(pipeline, readable_blocks(), workers)) as answers:
        for answer in answers:
            outcomes = iter(answer.outcomes)
            for document, reason in waiting.popleft():
                outcome = None if reason else next(outcomes)
                made = (
                    MISSING if outcome is None or outcome.document is None else get(outcome.document, field)
                )
                if made is MISSING:
                    failure = None if outcome is None else outcome.failure
                    why = reason or str(failure or "the pipeline of the index drops it")
                    name = f", {document['_id']!r:.80}," if "_id" in document else ""
                    raise InputError(f"documents[{number}]{name} can't be signed: {why}")
                yield put(document, field, made)
                number += 1


def _fields(document: object) -> Document:
    if not isinstance(document, Mapping):
        raise expected("document", "an object of its fields", document)
    return dict(document)
