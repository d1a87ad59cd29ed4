"""What leaving menus, headers and footers out does to pages as sites serve them.

``SHINGLEFOLD_SITES`` names a folder with a folder a site, each with the same pages at the same paths under
another template: then pages at one path are copies, all others are not. Documentation built with several
themes is such a set (``sphinx-build -C -b html -D html_theme=THEME SOURCE SITES/THEME``).
"""

import os
from collections import Counter
from collections.abc import Callable
from math import comb
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from bench.table import Row
from shinglefold.canon import strip_html
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.processors.texts import extractor
from shinglefold.registry import make_scheme

_SITES = "SHINGLEFOLD_SITES"
#: Pages that a generator makes, of links only.
_GENERATED = {"search.html", "genindex.html", "py-modindex.html"}


class _Page(NamedTuple):
    path: str
    html: str


def measure() -> list[Row]:
    """Return what folds with the whole text and with the article alone; nothing where there are no sites."""
    if not os.environ.get(_SITES):
        return []
    pages = _pages(Path(os.environ[_SITES]))
    article = extractor()
    ways: dict[str, Callable[[str], str]] = {
        "html_strip": strip_html,
        "main_content": lambda html: article(html) or strip_html(html),
    }
    return [row for name, extract in ways.items() for row in _folded(name, extract, pages)]


def _pages(sites: Path) -> list[_Page]:
    return [
        _Page(str(file.relative_to(site)), file.read_text("utf-8"))
        for site in sorted(sites.iterdir())
        for file in sorted(site.rglob("*.html"))
        if file.name not in _GENERATED and not any(part.startswith("_") for part in file.parts)
    ]


def _folded(name: str, extract: Callable[[str], str], pages: list[_Page]) -> list[Row]:
    begin = perf_counter()
    texts = [extract(page.html) for page in pages]
    seconds = perf_counter() - begin
    scheme = make_scheme()
    found = Fingerprinter(scheme).fingerprint_arrays(texts).pairs(scheme)
    pairs = [(pages[a].path, pages[b].path) for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)]
    copies = sum(comb(count, 2) for count in Counter(page.path for page in pages).values())
    right = sum(one == other for one, other in pairs)
    different = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    return [
        Row(
            f"{name}: copies that fold", right / copies, "", f"{right} of {copies} pairs, {len(pages)} pages"
        ),
        Row(f"{name}: different pages that fold", len(different), "pairs of paths", ""),
        Row(f"{name}: time", seconds / len(pages) * 1e3, "ms a page", ""),
    ]
