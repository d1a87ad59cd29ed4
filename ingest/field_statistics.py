"""Find out which fields of documents hold text: those that were configured, or others."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shinglefold.ingest.field_paths import MISSING, get

_T = TypeVar("_T")
#: The number of documents in the sample, and of levels of objects that are searched in each.
_SAMPLE, _LEVELS = 200, 3
#: The most characters of a text in the sample.
_PREFIX = 1 << 16
#: Usual names of title fields, then of other text fields.
_TITLES = ("title", "headline", "heading", "subject", "name", "caption")
_BODIES = ("body", "content", "text", "article", "fulltext", "full_text", "html", "message", "description")
#: Running text: eight words, or eight characters of a script without spaces. Possessive, and anchored at word
#: beginnings: a field may hold an image as one "word" of megabytes.
_RUNNING = re.compile(r"(?<!\S)(?:\S++\s++){7}\S|[\u3400-\u9fff]{8}")


@dataclass(slots=True)
class FieldWatch:
    """Records which fields occur in documents, and keeps a sample of them.

    ``language``: the field that should hold the language of documents, empty if none was configured.
    """

    fields: Sequence[str]
    documents: int = 0
    present: set[str] = field(default_factory=set)
    sample: list[Mapping[str, Any]] = field(default_factory=list)
    language: str = ""

    def watch(self, records: Iterable[_T]) -> Iterator[_T]:
        """Yield records, or plain documents, unchanged, and add each of them."""
        for record in records:
            document = getattr(record, "document", record)
            if isinstance(document, Mapping):
                self.add(document)
            yield record

    def add(self, document: Mapping[str, Any]) -> None:
        """Add one document."""
        self.documents += 1
        for name in (*self.fields, self.language):
            if name and get(document, name) not in (MISSING, None):
                self.present.add(name)
        if len(self.sample) < _SAMPLE:
            self.sample.append({name: _prefix(value) for name, value in document.items()})

    def merge(self, other: "FieldWatch") -> None:
        """Add the record of other documents."""
        self.documents += other.documents
        self.present |= other.present
        self.sample += other.sample[: _SAMPLE - len(self.sample)]

    @property
    def absent(self) -> tuple[str, ...]:
        """The configured fields that no document has; none before the first document."""
        return tuple(name for name in self.fields if self.documents and name not in self.present)

    @property
    def textless(self) -> bool:
        """Whether no document has any of the fields, so that no duplicates can be found."""
        return bool(self.fields) and len(self.absent) == len(self.fields)

    @property
    def undeclared(self) -> str:
        """The configured language field if no document has it, else empty."""
        return "" if not self.documents or self.language in self.present else self.language

    @property
    def likely_id(self) -> str:
        """The field that seems to hold ids under another spelling, if no document of the sample has an id."""
        if any("_id" in document for document in self.sample):
            return ""
        names = [name for document in self.sample for name in document if name.strip(" _").lower() == "id"]
        return names[0] if names and len(names) == len(self.sample) else ""

    def elsewhere(self) -> tuple[str, ...]:
        """Return other fields that hold text, titles first."""
        return tuple(name for name in likely_texts(self.sample) if name not in self.fields)


def _prefix(value: object) -> object:
    """Return the beginning of a text: a sample of whole texts may not fit into memory."""
    return value[:_PREFIX] if isinstance(value, str) else value


def likely_texts(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields with running text in a quarter of the documents, and titles before them.

    Return nothing if there are titles only.
    """
    running: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    for document in documents:
        for path, text in _strings(document):
            if path.rpartition(".")[2].lower() in _TITLES:
                titles[path] += 1
            elif _RUNNING.search(text):
                running[path] += 1
    bodies = [path for path, count in running.items() if 4 * count >= len(documents)]
    first = [path for path, count in titles.items() if 4 * count >= len(documents)]
    return sorted(first, key=_rank) + sorted(bodies, key=_rank) if bodies else []


def _rank(path: str) -> tuple[int, str]:
    name = path.rpartition(".")[2].lower()
    known = (*_TITLES, *_BODIES)
    return (known.index(name) if name in known else len(known)), path


def _strings(node: Mapping[str, Any], prefix: str = "", level: int = 0) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        if isinstance(value, str) and not name.startswith("_"):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping) and level < _LEVELS:
            yield from _strings(value, f"{prefix}{name}.", level + 1)
