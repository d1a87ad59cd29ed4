"""Where the text of documents is: whether the fields named hold it, and which others do."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shinglefold.ingest.field_paths import MISSING, get

_T = TypeVar("_T")
#: Documents looked at for text in other fields, and objects within objects there.
_SAMPLE, _DEEP = 200, 3
#: Characters of a text in the sample.
_LOOKED_AT = 1 << 16
#: Names that fields with text have on other sites; those of titles first.
_TITLES = ("title", "headline", "heading", "subject", "name", "caption")
_BODIES = ("body", "content", "text", "article", "fulltext", "full_text", "html", "message", "description")
#: Running text: so many words, or characters without spaces between words. Looked for from where words begin,
#: and without going back: a field may hold a picture in one "word" of megabytes.
_RUNNING = re.compile(r"(?<!\S)(?:\S++\s++){7}\S|[\u3400-\u9fff]{8}")


@dataclass(slots=True)
class FieldWatch:
    """Notes which fields stand in some document, and keeps a few documents to look at.

    ``language``: the field that was named for the language of documents, empty where none was.
    """

    fields: Sequence[str]
    documents: int = 0
    present: set[str] = field(default_factory=set)
    sample: list[Mapping[str, Any]] = field(default_factory=list)
    language: str = ""

    def watch(self, records: Iterable[_T]) -> Iterator[_T]:
        """Yield records, or plain documents, as they are."""
        for record in records:
            document = getattr(record, "document", record)
            if isinstance(document, Mapping):
                self.see(document)
            yield record

    def see(self, document: Mapping[str, Any]) -> None:
        """Look at one document."""
        self.documents += 1
        for name in (*self.fields, self.language):
            if name and get(document, name) not in (MISSING, None):
                self.present.add(name)
        if len(self.sample) < _SAMPLE:
            self.sample.append({name: _begun(value) for name, value in document.items()})

    def add(self, other: "FieldWatch") -> None:
        """Add what was seen of other documents."""
        self.documents += other.documents
        self.present |= other.present
        self.sample += other.sample[: _SAMPLE - len(self.sample)]

    @property
    def absent(self) -> tuple[str, ...]:
        """The fields that no document has; none where there was no document."""
        return tuple(name for name in self.fields if self.documents and name not in self.present)

    @property
    def textless(self) -> bool:
        """Whether no document has any of the fields, so that nothing can fold."""
        return bool(self.fields) and len(self.absent) == len(self.fields)

    @property
    def undeclared(self) -> str:
        """The field named for languages, where no document has it; empty where none was or one has it."""
        return "" if not self.documents or self.language in self.present else self.language

    @property
    def likely_id(self) -> str:
        """The field that seems to hold ids under another spelling, where no document looked at has one."""
        if any("_id" in document for document in self.sample):
            return ""
        names = [name for document in self.sample for name in document if name.strip(" _").lower() == "id"]
        return names[0] if names and len(names) == len(self.sample) else ""

    def elsewhere(self) -> tuple[str, ...]:
        """Return other fields that hold text, a title before the rest."""
        return tuple(name for name in likely_texts(self.sample) if name not in self.fields)


def _begun(value: object) -> object:
    """Return the beginning of a long text: a sample of whole ones may not fit into memory."""
    return value[:_LOOKED_AT] if isinstance(value, str) else value


def likely_texts(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields that hold text: those with running text in a quarter of the documents, and titles.

    A title alone is none: there must be running text, too.
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


def _strings(node: Mapping[str, Any], prefix: str = "", deep: int = 0) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        if isinstance(value, str) and not name.startswith("_"):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping) and deep < _DEEP:
            yield from _strings(value, f"{prefix}{name}.", deep + 1)
