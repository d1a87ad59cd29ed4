"""The processor that keeps a page's article and leaves menu, header and footer out."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from shinglefold.canon import strip_html
from shinglefold.contracts.engine import Document
from shinglefold.errors import MissingExtra
from shinglefold.ingest.field_paths import put, text
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.options import Options
from shinglefold.ingest.processors.texts import Outcome, attempt


class MainContent:
    """Replace a page's markup by the text of its article, as resiliparse finds it.

    What surrounds an article on every page of a site makes different pages alike and copies on different
    sites unlike. A page in which no article is found keeps all its text and is counted (``no_main_content``).

    Options: ``field``, ``target_field`` (default the field), ``ignore_missing`` (false).

    Cost: some 3 ms a page of 30 kB, about as long as ``html_strip`` takes.
    """

    type: ClassVar[str] = "main_content"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.field = options.text("field")
        self.target = options.text("target_field", self.field)
        self.ignore_missing = options.flag("ignore_missing", False)
        self.meter = tools.meter
        self.extract = extractor()

    def apply(self, documents: Sequence[Document]) -> list[Outcome]:
        """Reduce one field of each document to its article."""
        with self.meter.stage("strip"):
            return attempt(self._one, documents)

    def _one(self, document: Document) -> Document:
        html = text(document, self.field, self.ignore_missing)
        return document if html is None else put(document, self.target, self._article(html))

    def _article(self, html: str) -> str:
        try:
            # Its parser takes UTF-8: a lone surrogate would end the document, not only the character.
            found = self.extract(html.encode("utf-8", "replace").decode("utf-8"))
        except (ValueError, RuntimeError):
            found = ""
        if found.strip():
            return found
        self.meter.counts["no_main_content"] += 1
        return strip_html(html)


def extractor() -> Callable[[str], str]:
    """Return what finds the article of a page; of a page without one it returns nothing.

    Raises:
        MissingExtra: resiliparse is not installed.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtra("main-content", "the processor main_content") from error

    def extract(html: str) -> str:
        found: str = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
        return found

    return extract
