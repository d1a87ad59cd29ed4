"""What pages of docs do with the example site in process, and the tutorial, can be done on a server."""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tutorial import PAGE, run, steps, write_files

from shinglefold.examples import articles
from shinglefold.ingest import index_documents

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


@pytest.mark.newest
def test_the_commands_of_the_tutorial_for_a_server_index_find_and_fold(server, engine, tmp_path):
    write_files(tmp_path)
    run(next(steps()).command, tmp_path)
    shown = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[-1]
    index, search, page = shown.replace("http://localhost:9200", server.url).splitlines()
    try:
        assert "166 indexed into site" in run(index, tmp_path)
        # What is found, and in which order, is the server's own; that it folds is not.
        assert "near-duplicates folded: " in run(search, tmp_path)
        printed = run(page, tmp_path)
        assert re.search(r" \+ [1-9]\d*$", printed, re.MULTILINE)
        assert re.search(r"^\d+ hits, \d+ stories$", printed, re.MULTILINE)
    finally:
        if engine.index_exists("site"):
            engine.delete_index("site")


@pytest.fixture(scope="module")
def site(engine, pipeline) -> Iterator[str]:
    if engine.index_exists("site"):
        engine.delete_index("site")
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
