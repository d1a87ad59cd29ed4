"""Count in how many documents the configured fields have text; suggest others."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import islice
from typing import Any, TypeVar

from shinglefold.canon import strip_html
from shinglefold.documents import MISSING, get, holds_html

_T = TypeVar("_T")
#: The number of documents in the sample, and of levels of objects that are searched in each.
_SAMPLE, _LEVELS = 200, 3
#: The characters at the beginning of a text that show whether it is a copy of another field.
_BEGINNING = 80
#: The most characters of a text in the sample.
_PREFIX = 1 << 16
#: Usual names of title fields, then of other text fields.
_TITLES = ("title", "headline", "heading", "subject", "name", "caption")
_BODIES = ("body", "content", "text", "article", "fulltext", "full_text", "html", "message", "description")
#: Running text: eight words, or eight characters of a script without spaces, also in short clauses.
#: Possessive, and anchored at word beginnings: a field may hold an image as one "word" of megabytes.
_RUNNING = re.compile(r"(?<!\S)(?:\S++\s++){7}\S|[\u3400-\u9fff](?:[,;:，、。；：]?[\u3400-\u9fff]){7}")
#: Names of fields that hold ids if their values differ: ``product_id``, ``productId``, ``SKU``.
_OF_IDS = re.compile(r"[_-](?:id|ID)$|[a-z](?:Id|ID)$|^(?i:sku|uuid|guid)$")
#: Tags of running text, and comments.
_MARKUP = re.compile(
    r"</?(?:a|article|b|blockquote|body|br|center|code|dd|div|dl|dt|em|figure|font|h[1-6]|head|header|hr|html|i|"
    r"iframe|img|li|main|o:p|ol|p|pre|section|small|span|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|"
    r"u|ul)(?:\s[^<>]*)?>|<!--|<!doctype\b|<!\[CDATA\[|<(?:script|input|button|form|label|summary)\b",
    re.IGNORECASE,
)
#: A line break between words, and a character reference: texts about tags have neither.
_BREAK = re.compile(r"[^\s<>]<br\s*/?>[^\s<>]", re.IGNORECASE)
_REFERENCE = re.compile(r"&#?\w{2,31};")
#: The most words of a product card, and the fewest texts that can show that all are cards.
_CARD, _FEWEST = 60, 5
_NUMBERS = re.compile(r"\d++")
#: This many tags make a text HTML; at its beginning or end one is enough.
_MANY_TAGS = 3


@dataclass(slots=True)
class FieldWatch:
    """Records which fields occur in documents, and keeps a sample of them.

    ``language``, ``routing``: the fields that should hold them, empty if none was configured.
    ``sources``: further fields from which steps of the pipeline take text; None if these are unknown.
    ``stripped``: fields from which steps take the markup. ``facts``: fields whose values keep copies apart.
    """

    fields: Sequence[str]
    documents: int = 0
    present: set[str] = field(default_factory=set)
    sample: list[Mapping[str, Any]] = field(default_factory=list)
    language: str = ""
    sources: Sequence[str] | None = ()
    stripped: Sequence[str] = ()
    facts: Sequence[str] = ()
    routing: str = ""

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
        for name in (*self.fields, *self.facts, self.language, self.routing):
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
    def missing_facts(self) -> tuple[str, ...]:
        """A sentence for each field of facts that no document has: it keeps no documents apart."""
        return tuple(
            f"no document has the field {name}, whose values are to keep copies apart (never_differ)"
            for name in self.facts
            if self.documents and name not in self.present
        )

    @property
    def textless(self) -> bool:
        """Whether no document has any of the fields, so that no duplicates can be found."""
        return bool(self.fields) and len(self.absent) == len(self.fields)

    @property
    def undeclared(self) -> str:
        """The configured language field if no document has it, else empty."""
        return self._name_if_missing(self.language)

    @property
    def unrouted(self) -> str:
        """The configured routing field if no document has it, else empty."""
        return self._name_if_missing(self.routing)

    def _name_if_missing(self, name: str) -> str:
        return "" if not self.documents or name in self.present else name

    @property
    def likely_id(self) -> str:
        """The field that seems to hold ids under another name, if no document of the sample has an id."""
        if any("_id" in document for document in self.sample):
            return ""
        names = [name for document in self.sample for name in document if name.strip(" _").lower() == "id"]
        if names and len(names) == len(self.sample):
            return names[0]
        for name in self.sample[0] if len(self.sample) > 1 else ():
            values = [document.get(name) for document in self.sample]
            plain = _OF_IDS.search(name) and all(isinstance(value, str | int) for value in values)
            if plain and len(set(values)) == len(values):
                return name
        return ""

    def elsewhere(self) -> tuple[str, ...]:
        """Return other fields that hold text, titles first."""
        return tuple(name for name in likely_texts(self.sample) if name not in self.fields)

    def coverage(self) -> "TextCoverage":
        """Return how much of the text of the sample the fields hold."""
        return text_coverage(self.sample, self.fields, self.sources, self.stripped)


@dataclass(frozen=True, slots=True)
class TextCoverage:
    """How much of the text of a sample of documents is read.

    ``read``: fields that are read and hold text. ``lacking``: fields that are read and that most documents
    lack. ``unread``: other fields with a fifth of the text or more, titles first; no copies of what is read.
    ``mostly_unread``: one of them holds more than all that are read. ``titles_alone``: in most documents
    only titles are read. ``markup``: fields that are read and hold HTML, though documents do not say so, in a
    tenth of those that have them; in how many, by field. ``cards``: whether the texts are short and full of
    numbers, as on product cards.
    """

    documents: int = 0
    read: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    mostly_unread: bool = False
    titles_alone: bool = False
    markup: Mapping[str, int] = field(default_factory=dict)
    cards: bool = False

    @property
    def textless(self) -> bool:
        """Whether no document has text in the fields that are read."""
        return bool(self.documents and self.lacking) and not self.read

    @property
    def misread(self) -> bool:
        """Whether most of the text is in other fields than the missing one."""
        return self.mostly_unread and bool(self.lacking)

    def suggestion(self) -> tuple[str, ...]:
        """Return the fields to read: those that are read and hold text, and the unread ones."""
        return tuple(sorted({*self.read, *self.unread}, key=_rank))


def text_coverage(
    documents: Sequence[Mapping[str, Any]],
    fields: Sequence[str],
    sources: Sequence[str] | None = (),
    stripped: Sequence[str] = (),
) -> TextCoverage:
    """Return how much of the text of documents some fields hold.

    Args:
        fields: the fields whose texts fingerprints are made of.
        sources: further fields from which their texts are taken; None if these are unknown, so that no other
            fields are reported.
        stripped: fields from which markup was removed before.
    """
    names = list(dict.fromkeys([*fields, *(sources or ())]))
    counts = Counter(name for one in documents for name in _fields_with_value(one, names))
    lacking = tuple(name for name in fields if documents and 2 * counts[name] < len(documents))
    alone = sum(has_titles_alone(one, names) for one in documents)
    read = tuple(name for name in fields if counts[name])
    plain = [name for name in fields if name not in stripped]
    marked = Counter(name for one in documents for name in plain if _holds_unstated_html(one, name))
    markup = {name: count for name, count in marked.items() if 10 * count >= counts[name]}
    coverage = TextCoverage(
        len(documents), read, lacking, titles_alone=2 * alone > len(documents), markup=markup,
        cards=_are_cards(documents, names),
    )  # fmt: skip
    if sources is None:
        return coverage
    texts = [_plain_texts(one) for one in documents]
    own = [" ".join(some[name] for name in names if name in some) for some in texts]
    sizes = Counter(
        {
            name: sum(len(some.get(name, "")) for some in texts)
            for name in likely_texts(documents)
            if name not in names and not _is_copied(name, texts, own)
        }
    )
    known = sum(map(len, own))
    large = [name for name, size in sizes.items() if 5 * size >= known + sizes.total()]
    if all(map(_is_title, large)):
        return coverage
    lacks_title = not any(map(_is_title, read))
    unread = tuple(name for name in sizes if name in large or (lacks_title and _is_title(name)))
    return replace(coverage, unread=unread, mostly_unread=max(sizes.values()) > known)


def _are_cards(documents: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> bool:
    """Return whether most texts have at most ``_CARD`` words and two numbers or more."""
    texts = [
        " ".join(value for name in fields if isinstance(value := get(one, name), str)) for one in documents
    ]
    found = [text for text in texts if text]
    cards = sum(len(text.split()) <= _CARD and len(_NUMBERS.findall(text)) >= 2 for text in found)
    return len(found) >= _FEWEST and 4 * cards >= 3 * len(found)


def has_titles_alone(document: Mapping[str, Any], fields: Sequence[str]) -> bool:
    """Return whether a document has values in fields of titles, and in no others of these fields."""
    held = _fields_with_value(document, fields)
    return bool(held) and all(map(_is_title, held))


def _holds_unstated_html(document: Mapping[str, Any], name: str) -> bool:
    """Return whether a field holds HTML that the ``format`` of the document does not announce."""
    text = get(document, name)
    # A character reference in a title is not markup: titles of HTML documents keep theirs, too.
    return isinstance(text, str) and not holds_html(document, name) and _is_html(text, name != "title")


def _is_html(text: str, references: bool = True) -> bool:
    """Return whether a text is likely to be HTML, and not a text about tags.

    Args:
        references: a character reference is enough.
    """
    if "<" not in text and "&" not in text:
        return False
    if _BREAK.search(text):
        return True
    if references and any(unescape(one) != one for one in _REFERENCE.findall(text)):
        return True
    found = list(islice(_MARKUP.finditer(text.strip()), _MANY_TAGS))
    return len(found) >= _MANY_TAGS or any(one.start() == 0 for one in found) or _ends_with_tag(text)


def _ends_with_tag(text: str) -> bool:
    text = text.rstrip()
    return text.endswith(">") and _MARKUP.fullmatch(text, max(0, text.rfind("<"))) is not None


def _fields_with_value(document: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """Return the fields that have a value; a pipeline may turn it into text."""
    return [name for name in fields if get(document, name) not in (MISSING, None, "")]


def _plain_texts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a document by path, without markup and extra blanks."""
    return {
        path: " ".join((strip_html(text) if "<" in text else text).split())
        for path, text in _strings(document)
    }


def _is_copied(name: str, texts: Sequence[Mapping[str, str]], own: Sequence[str]) -> bool:
    """Return whether most texts of a field begin like a passage of a field that is read."""
    pairs = [(some[name][:_BEGINNING], text) for some, text in zip(texts, own, strict=True) if some.get(name)]
    return 2 * sum(beginning in text for beginning, text in pairs) > len(pairs)


def _is_title(path: str) -> bool:
    return path.rpartition(".")[2].lower() in _TITLES


def has_usual_name(path: str) -> bool:
    """Return whether a field has a usual name of a text."""
    return path.rpartition(".")[2].lower() in (*_TITLES, *_BODIES)


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
            if _is_title(path):
                titles[path] += 1
            elif _RUNNING.search(text):
                running[path] += 1
    bodies = [path for path, count in running.items() if 4 * count >= len(documents)]
    first = [path for path, count in titles.items() if 4 * count >= len(documents)]
    return sorted(first, key=_rank) + sorted(bodies, key=_rank) if bodies else []


def string_fields(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields that hold strings: titles first, then those with most characters."""
    sizes: Counter[str] = Counter()
    for document in documents:
        for path, text in _strings(document):
            sizes[path] += len(text)
    return sorted(sizes, key=lambda path: (not _is_title(path), -sizes[path]))


def _rank(path: str) -> tuple[int, str]:
    name = path.rpartition(".")[2].lower()
    known = (*_TITLES, *_BODIES)
    return (known.index(name) if name in known else len(known)), path


def _strings(node: Mapping[str, Any], prefix: str = "", level: int = 0) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        if isinstance(value, str) and not str(name).startswith("_"):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping) and level < _LEVELS:
            yield from _strings(value, f"{prefix}{name}.", level + 1)
