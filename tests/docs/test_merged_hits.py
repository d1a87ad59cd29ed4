"""docs/how-to-merged-hits.md: its table reads answers of each engine."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to-merged-hits.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\w+), .*? \| `(answer.*?)` \| `(hit.*?)` \|$", PAGE, re.MULTILINE)
#: Answers in the form of each engine, with one hit of id 1, text "law" and score 0.5.
ANSWERS = {
    "Vespa": {
        "root": {
            "id": "toplevel",
            "relevance": 1.0,
            "fields": {"totalCount": 1},
            "children": [{"id": 1, "relevance": 0.5, "source": "laws", "fields": {"body": "law"}}],
        }
    },
    "Typesense": {"found": 1, "page": 1, "hits": [{"document": {"id": 1, "body": "law"}, "text_match": 0.5}]},
    "Meilisearch": {"query": "law", "limit": 20, "hits": [{"id": 1, "body": "law", "_rankingScore": 0.5}]},
    "Qdrant": {
        "status": "ok",
        "result": {"points": [{"id": 1, "version": 3, "score": 0.5, "payload": {"body": "law"}}]},
    },
}


def test_the_table_has_a_row_for_each_engine():
    assert [engine for engine, _, _ in ROWS] == list(ANSWERS)


@pytest.mark.parametrize(("engine", "hits", "parts"), ROWS)
def test_a_row_reads_an_answer_of_its_engine(engine, hits, parts):
    (hit,) = eval(hits, {"answer": ANSWERS[engine]})
    assert eval(parts, {"hit": hit}) == (1, "law", 0.5)
