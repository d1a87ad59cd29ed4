"""The processor that stores a document's fingerprint."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from msgspec.json import decode

from shinglefold.canon.segmentation import Cuttable, join
from shinglefold.contracts.engine import Document
from shinglefold.documents import FORMAT
from shinglefold.errors import ProcessorError
from shinglefold.ingest.field_paths import put
from shinglefold.ingest.never_differ import NeverDiffer
from shinglefold.ingest.processors.context import Options, ProcessorResult, Tools
from shinglefold.ingest.processors.texts import declared_language, texts_of, without_markup
from shinglefold.model.recipe import FIELD, PASSAGES, check_field
from shinglefold.model.values import Fingerprint


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
        languages = [self._language(documents[place]) for place in texts]
        facts = self.never_differ.facts(list(texts.values()), [documents[place] for place in texts])
        for place, value in zip(texts, self._values(list(texts.values()), languages, facts), strict=True):
            try:
                outcomes[place] = put(documents[place], self.target, value)
            except ProcessorError as error:
                outcomes[place] = error
        return outcomes

    def _values(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None], facts: Sequence[str] | None
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

    def _language(self, document: Document) -> str | None:
        return declared_language(document, self.language_field, self.language, self.tools)

    def _texts(self, outcomes: list[ProcessorResult]) -> dict[int, Cuttable]:
        """Return the texts by position in the block.

        In ``outcomes`` an error replaces each document without text.
        """
        texts: dict[int, Cuttable] = {}
        for place, document in enumerate(outcomes):
            assert isinstance(document, dict)
            try:
                shown = self._shown(document)
                texts[place] = join(texts_of(shown, self.fields, self.ignore_missing))
            except ProcessorError as error:
                outcomes[place] = error
        return texts

    def _shown(self, document: Document) -> Document:
        if not self.strip_html or document.get(FORMAT) != "html":
            return document
        with self.tools.meter.stage("strip"):
            return without_markup(document, self.fields)
