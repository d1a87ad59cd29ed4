"""The processor that stores a document's fingerprint."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from msgspec.json import decode

from shinglefold.canon.text.chunking import Cuttable, join
from shinglefold.contracts.engine import Document
from shinglefold.errors import ProcessorError
from shinglefold.ingest.field_paths import put
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.options import Options
from shinglefold.ingest.processors.texts import Outcome, declared, texts_of
from shinglefold.model.recipe import FIELD, PASSAGES, check_field
from shinglefold.model.values import Fingerprint


class Supershingle:
    """Write supershingles, signature, digest, language and scheme of a text into one object field.

    Options: ``field`` or ``fields`` (their texts are joined by newlines), ``target_field`` (default
    ``dedup``), ``language_field`` or ``language`` (neither: chosen word by word), ``ignore_missing`` (true: a
    document without text gets a fingerprint without a signature, which never folds), ``keywords`` (true;
    false stores no supershingles: pages are folded all the same, in less space, but copies are not found,
    groups not numbered), ``passages`` (false; true also stores elements by which passages of other texts are
    found).
    """

    type: ClassVar[str] = "supershingle"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.fields = options.names("field", "fields")
        target = options.text("target_field", FIELD)
        self.target = check_field(f"{options.place}: 'target_field'", target, self.fields)
        self.language_field = options.optional("language_field")
        self.language = tools.check(options.optional("language"), options.place)
        self.ignore_missing = options.flag("ignore_missing", True)
        self.keywords = options.flag("keywords", True)
        self.passages = options.flag("passages", False)
        self.tools = tools

    def apply(self, documents: Sequence[Document]) -> list[Outcome]:
        """Fingerprint the documents together; those whose fields are no text fail."""
        outcomes: list[Outcome] = list(documents)
        texts = self._texts(outcomes)
        languages = [self._declared(documents[place]) for place in texts]
        for place, made in zip(texts, self._made(list(texts.values()), languages), strict=True):
            try:
                outcomes[place] = put(documents[place], self.target, made)
            except ProcessorError as error:
                outcomes[place] = error
        return outcomes

    def _made(self, texts: Sequence[Cuttable], languages: Sequence[str | None]) -> Sequence[Any]:
        """Return what is written of each text."""
        if not self.passages:
            if self.tools.seal is None and self.keywords:
                # Read from what is written for a whole block at once: half the time of objects in between.
                return list(map(decode, self.tools.fingerprinter.fingerprint_json(texts, languages)))
            return [self._field(one) for one in self.tools.fingerprinter.fingerprint(texts, languages)]
        # Indices without passages need none of it.
        from shinglefold.passages.winnowing import stored_elements

        each = self.tools.fingerprinter.fingerprint_with_tokens(texts, languages)
        return [{**self._field(one), PASSAGES: stored_elements(tokens)} for one, tokens in each]

    def _field(self, made: Fingerprint) -> dict[str, Any]:
        seal = self.tools.seal
        kept = made if self.keywords else replace(made, supershingles=())
        return (kept if seal is None else seal.sealed(kept)).to_field()

    def _declared(self, document: Document) -> str | None:
        return declared(document, self.language_field, self.language, self.tools)

    def _texts(self, outcomes: list[Outcome]) -> dict[int, Cuttable]:
        """Return the texts by place; put the reason in the place of a document that has none."""
        texts: dict[int, Cuttable] = {}
        for place, document in enumerate(outcomes):
            assert isinstance(document, dict)
            try:
                texts[place] = join(texts_of(document, self.fields, self.ignore_missing))
            except ProcessorError as error:
                outcomes[place] = error
        return texts
