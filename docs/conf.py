"""The pages as a site, with the Python API from its docstrings; ``make site`` builds it."""

import re
from importlib import metadata

from sphinx.application import Sphinx

project = "shinglefold"
author = "The shinglefold authors"
release = metadata.version("shinglefold")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
html_theme = "furo"
html_title = f"shinglefold {release}"
# Pages link to headings of other pages.
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "engine, name, recipe, options, settings"}
autodoc_typehints_format = "short"
# Sessions and answers are shown as they are typed and printed, which is no language that has a lexer.
suppress_warnings = ["misc.highlighting_failure"]

_OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./[^)]*\)")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([\w-]+)\.md\)", re.MULTILINE)


def _adapt_source(_app: Sphinx, page: str, source: list[str]) -> None:
    """Drop links to files that the site does not have; make the lists of the first page the site's menu."""
    source[0] = _OUTSIDE.sub(r"\1", source[0])
    if page == root_doc:
        _, *parts = _SECTION.split(source[0])
        for caption, text in zip(parts[::2], parts[1::2], strict=True):
            pages = "\n".join(_PAGE.findall(text))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", _adapt_source)
