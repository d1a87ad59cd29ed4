"""What pages of docs do with the example site in process can be done with it on a server."""

import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest

from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents

_DOCS = Path(__file__).parents[2] / "docs"
_OPENED = 'shinglefold.open(temporary_index("site"), "site")'
#: Sessions with group numbers, which regrouping gives, run in ``test_groups.py``.
_NUMBERED = {"groups.md"}
PAGES = sorted({page.name for page in _DOCS.glob("*.md") if _OPENED in page.read_text("utf-8")} - _NUMBERED)
_TEXT, _KEYWORD = {"type": "text"}, {"type": "keyword"}
_FIELDS = {
    "title": _TEXT,
    "body": _TEXT,
    "lang": _KEYWORD,
    "url": _KEYWORD,
    "host": _KEYWORD,
    "date": {"type": "date"},
}


@pytest.fixture(scope="module")
def site(engine, scheme, canonicalizer) -> Iterator[str]:
    if engine.index_exists("site"):
        engine.delete_index("site")
    pipeline = Pipeline.from_json(default_definition(), scheme, canonicalizer)
    index_documents(engine, "site", articles(), pipeline, properties=_FIELDS, workers=1)
    yield "site"
    engine.delete_index("site")


@pytest.mark.parametrize("page", PAGES)
def test_a_session_shown_in_docs_runs_on_a_server(site, server, page):
    text = (_DOCS / page).read_text("utf-8").replace(_OPENED, f'shinglefold.open("{server.url}", "{site}")')
    examples = doctest.DocTestParser().get_examples(text)
    assert any(server.url in example.source for example in examples)
    names: dict[str, object] = {}
    for example in examples:
        # What is printed depends on a server's analysis and scores.
        exec(example.source, names)
