"""Processors on texts: fingerprint, strip markup, keep the main content, detect language, canonicalize.

``NeverDiffer`` says what copies must have in common besides their texts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from msgspec.json import decode

from shinglefold.canon import strip_html
from shinglefold.canon.html import main_markup
from shinglefold.canon.segmentation import Cuttable, join
from shinglefold.contracts.engine import Document
from shinglefold.documents import FORMAT, MISSING, get, holds_html, plain_text, put, text, values_at
from shinglefold.errors import ConfigError, MissingExtra, ProcessorError
from shinglefold.ingest.processors.context import (
    DocumentProcessor,
    FieldProcessor,
    Options,
    ProcessorResult,
    Tools,
)
from shinglefold.model.recipe import FIELD, PASSAGES, check_field
from shinglefold.model.values import Fingerprint, WordClass
from shinglefold.options.validation import check_strings

#: The classes of words that ``never_differ`` may name.
WORD_CLASSES: tuple[str, ...] = get_args(WordClass)
#: Names a field that has the name of a class of words, as on the servers.
_SOURCE = "_source."
_MOST = 100


@dataclass(frozen=True, slots=True)
class NeverDiffer:
    """Facts by which documents differ, however similar their texts are.

    ``classes``: of words, see ``WordClass``. ``fields``: fields whose values must be equal; case,
    width and spaces in them do not matter, and no value differs from any value.
    """

    classes: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Any, place: str = "never_differ") -> "NeverDiffer":  # noqa: ANN401 - JSON
        """Read a list of names: classes of words, and fields. ``_source.numbers`` is a field ``numbers``.

        Raises:
            ConfigError: it is not a list of names, or one is nearly that of a class.
        """
        names = check_strings(place, [given] if isinstance(given, str) else given, _MOST)
        for name in names:
            _check_name(place, name)
        classes = tuple(sorted({name for name in names if name in WORD_CLASSES}))
        fields = {name.removeprefix(_SOURCE) for name in names if name not in WORD_CLASSES}
        return cls(classes, tuple(sorted(fields)))

    def __bool__(self) -> bool:
        return bool(self.classes or self.fields)

    @property
    def names(self) -> list[str]:
        """The names that ``parse`` reads."""
        return [*self.classes, *(f"{_SOURCE}{one}" if _class_meant(one) else one for one in self.fields)]

    def facts(self, texts: Sequence[Cuttable], documents: Sequence[Document]) -> list[str] | None:
        """Return the facts of documents as a fingerprint stores them; None if nothing is named."""
        if not self:
            return None
        # Imported here: few indices have facts, and their expressions take 20 ms to compile.
        from shinglefold.canon.facts import facts_of

        stated = [
            [f"{name}={_join_values(values_at(document, name))}" for name in self.fields]
            for document in documents
        ]
        return facts_of(texts, self.classes, stated)


def _check_name(place: str, name: str) -> None:
    """Refuse a name that would protect nothing: a class in another spelling, or nothing at all."""
    if not name.strip():
        raise ConfigError(f"{place}: an empty name; classes of words are {', '.join(WORD_CLASSES)}")
    meant = _class_meant(name)
    if meant and meant != name:
        raise ConfigError(
            f"{place}: {name!r} is not a class of words; did you mean {meant!r}? A field of this name is "
            f"{_SOURCE + name!r}"
        )


def _class_meant(name: str) -> str:
    """Return the class of facts that a name means in any spelling; "" if it is none."""
    return next((one for one in WORD_CLASSES if one.rstrip("s") == name.casefold().rstrip("s")), "")


def _join_values(values: Sequence[object]) -> str:
    return "\0".join(sorted(map(plain_text, values)))


def texts_of(document: Document, fields: Sequence[str], missing_ok: bool) -> list[str]:
    """Return the texts of the fields that are not missing.

    Raises:
        ProcessorError: a field is not text, or all fields are missing and must not be.
    """
    found = [text(document, field, True) for field in fields]
    present = [one for one in found if one is not None]
    if not present:
        text(document, fields[0], missing_ok)
    return present


def without_markup(document: Document, fields: Sequence[str], *, always: bool = False) -> Document:
    """Return a document whose fields are the text that a reader sees, if its ``format`` is ``html``.

    Other documents are returned unchanged. Hidden elements stay, because scripts show them.

    Args:
        always: whatever its ``format``.
    """
    for name in fields:
        if not (holds_html(document, name) or (always and name != "title")):
            continue
        if (html := text(document, name, True)) is not None:
            document = put(document, name, strip_html(html, keep_hidden=True))
    return document


def joined_text(document: Document, fields: Sequence[str], missing_ok: bool) -> str | None:
    """Return what ``texts_of`` returns joined by newlines, or None if all fields are missing."""
    present = texts_of(document, fields, missing_ok)
    return "\n".join(present) if present else None


def with_joined_lists(document: Document, fields: Sequence[str]) -> Document:
    """Return a document in which each field that is a list of texts is one text, as ``join`` makes it."""
    for name in fields:
        value = get(document, name)
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            document = put(document, name, "\n".join(value))
    return document


def declared_language(document: Document, field: str | None, fixed: str | None, tools: Tools) -> str | None:
    """Return the language of a document: the option's, else the one it declares, else None."""
    if fixed is not None or field is None:
        return fixed
    value = get(document, field)
    return None if value is MISSING else tools.language(value)


class HtmlStrip(FieldProcessor):
    """Replace markup by its visible text.

    Options: ``field``, ``target_field`` (default the field), ``ignore_missing`` (false), ``keep_hidden``
    (false; true keeps elements with the attribute ``hidden``, which scripts show).
    """

    type: ClassVar[str] = "html_strip"
    stage: ClassVar[str] = "strip"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.keep_hidden = options.flag("keep_hidden", False)

    def _one(self, document: Document) -> Document:
        html = text(document, self.field, self.ignore_missing)
        return document if html is None else put(document, self.target, strip_html(html, self.keep_hidden))


class DetectLanguage(DocumentProcessor):
    """Write the code of a text's main language, ``und`` if it has no word.

    Options: ``field`` or ``fields``, ``target_field`` (default ``language``), ``override`` (true; false keeps
    a language that the document declares), ``ignore_missing`` (false).
    """

    type: ClassVar[str] = "detect_language"
    stage: ClassVar[str] = "detect"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.fields = options.names("field", "fields")
        self.target = options.text("target_field", "language")
        self.override = options.flag("override", True)
        self.ignore_missing = options.flag("ignore_missing", False)

    def _one(self, document: Document) -> Document:
        if not self.override and get(document, self.target) not in (MISSING, None, ""):
            return document
        found = joined_text(document, self.fields, self.ignore_missing)
        if found is None:
            return document
        return put(document, self.target, self.tools.canonicalizer.detect(found))


class Canonicalize(DocumentProcessor):
    """Write the canonical tokens of a text, joined by spaces, as a field to search by lemma.

    Options: ``field`` or ``fields``, ``target_field`` (default ``canonical``), ``language_field`` or
    ``language`` (neither: chosen word by word), ``ignore_missing`` (false).
    """

    type: ClassVar[str] = "canonicalize"
    stage: ClassVar[str] = "canon"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.fields = options.names("field", "fields")
        self.target = options.text("target_field", "canonical")
        self.language_field = options.optional("language_field")
        self.language = tools.check(options.optional("language"), options.place)
        self.ignore_missing = options.flag("ignore_missing", False)

    def _one(self, document: Document) -> Document:
        found = joined_text(document, self.fields, self.ignore_missing)
        if found is None:
            return document
        language = declared_language(document, self.language_field, self.language, self.tools)
        tokens = self.tools.canonicalizer.tokens(found, language)
        return put(document, self.target, " ".join(token.text for token in tokens))


class MainContent(FieldProcessor):
    """Replace a page's markup by the text of its article, without menu, header and footer.

    Boilerplate makes different pages of one site similar, and copies on two sites different. A page without a
    recognizable article keeps all its text and is counted as ``no_main_content``. If a page marks
    its article by ``main`` or a single ``article``, nothing else is read.

    Options: ``field``, ``target_field`` (default the field), ``ignore_missing`` (false).

    Cost: about 7 ms for a page of 30 kB, twice that of ``html_strip``.
    """

    type: ClassVar[str] = "main_content"
    stage: ClassVar[str] = "strip"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.extract = extractor()

    def _one(self, document: Document) -> Document:
        html = text(document, self.field, self.ignore_missing)
        return document if html is None else put(document, self.target, self._article(html))

    def _article(self, html: str) -> str:
        try:
            found = self.extract(main_markup(html))
        except (ValueError, RuntimeError):
            found = ""
        if found.strip():
            return found
        self.tools.meter.counts["no_main_content"] += 1
        return strip_html(html)


def extractor() -> Callable[[str], str]:
    """Return a function that extracts the article of a page; its result is empty if there is none."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtra("main-content", "the processor main_content") from error

    def extract(html: str) -> str:
        found: str = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
        return found

    return extract


class Supershingle:
    """Write supershingles, signature, digest, language and scheme of a text into one object field.

    Options:
        ``field`` or ``fields``: their texts are joined by newlines.
        ``target_field``: default ``_dedup``.
        ``language_field`` or ``language``: neither chooses the language word by word.
        ``ignore_missing``: true; a document without text gets a fingerprint without a signature, which has no
        duplicates.
        ``strip_html``: false; true fingerprints a document whose ``format`` is ``html`` by the text that a
        reader sees. The document keeps its markup.
        ``keywords``: true; false saves space, but then searches find no copies, and groups get no numbers.
        ``passages``: false; true also stores elements by which passages of other texts are found.
        ``never_differ``: none; what copies must have in common, see ``NeverDiffer``. A hash of it is stored
        with the digest.
    """

    type: ClassVar[str] = "supershingle"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.fields = options.names("field", "fields")
        # In a pipeline ``_source.fingerprint`` is ``fingerprint``, as on the servers.
        target = options.text("target_field", FIELD).removeprefix("_source.")
        self.target = check_field(f"{options.place}: 'target_field'", target, self.fields)
        self.language_field = options.optional("language_field")
        self.language = tools.check(options.optional("language"), options.place)
        self.ignore_missing = options.flag("ignore_missing", True)
        self.strip_html = options.flag("strip_html", False)
        self.keywords = options.flag("keywords", True)
        self.passages = options.flag("passages", False)
        self.never_differ = NeverDiffer.parse(
            options.value("never_differ", ()), f"{options.place}: 'never_differ'"
        )
        self.tools = tools

    def apply(self, documents: Sequence[Document]) -> list[ProcessorResult]:
        """Fingerprint the documents as one block; those whose fields are not text fail."""
        outcomes: list[ProcessorResult] = list(documents)
        texts = self._texts(outcomes)
        languages = self._languages([documents[place] for place in texts])
        facts = self.never_differ.facts(list(texts.values()), [documents[place] for place in texts])
        for place, value in zip(texts, self._values(list(texts.values()), languages, facts), strict=True):
            try:
                outcomes[place] = put(documents[place], self.target, value)
            except ProcessorError as error:
                outcomes[place] = error
        return outcomes

    def _values(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None, facts: Sequence[str] | None
    ) -> Sequence[Any]:
        """Return the value of the target field for each text."""
        if not self.passages:
            if self.tools.seal is None and self.keywords:
                # Decoding the JSON of a whole block takes half the time of a Fingerprint object per text.
                return list(map(decode, self.tools.fingerprinter.fingerprint_json(texts, languages, facts)))
            return [self._field(one) for one in self.tools.fingerprinter.fingerprint(texts, languages, facts)]
        # Imported here: few indices have passages.
        from shinglefold.passages.shingle_positions import stored_elements

        each = self.tools.fingerprinter.fingerprint_with_tokens(texts, languages, facts)
        return [{**self._field(one), PASSAGES: stored_elements(tokens)} for one, tokens in each]

    def _field(self, fingerprint: Fingerprint) -> dict[str, Any]:
        seal = self.tools.seal
        stored = fingerprint if self.keywords else replace(fingerprint, supershingles=())
        return (stored if seal is None else seal.sealed(stored)).to_field()

    def _languages(self, documents: Sequence[Document]) -> list[str | None] | None:
        """Return the declared language of each document; None if no document declares one."""
        found = [declared_language(one, self.language_field, self.language, self.tools) for one in documents]
        return found if any(found) else None

    def _texts(self, outcomes: list[ProcessorResult]) -> dict[int, Cuttable]:
        """Return the texts by position in the block.

        In ``outcomes`` an error replaces each document without text.
        """
        texts: dict[int, Cuttable] = {}
        for place, document in enumerate(outcomes):
            assert isinstance(document, dict)
            try:
                shown = self._strip_markup(document)
                texts[place] = join(texts_of(shown, self.fields, self.ignore_missing))
            except ProcessorError as error:
                outcomes[place] = error
        return texts

    def _strip_markup(self, document: Document) -> Document:
        if not self.strip_html or document.get(FORMAT) != "html":
            return document
        with self.tools.meter.stage("strip"):
            return without_markup(document, self.fields)
