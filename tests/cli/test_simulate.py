"""simulate: the answer of the servers' own request, for documents in any of the usual forms."""

import json
from pathlib import Path

import pytest

_DOCUMENT = {"title": "Мост", "body": "Мост через реку закроют на ремонт в мае"}


def test_the_default_pipeline_fingerprints(run):
    answer = run("simulate", "-", stdin=json.dumps(_DOCUMENT)).json()
    (one,) = answer["docs"]
    assert one["doc"]["_source"]["title"] == "Мост"
    assert one["doc"]["_source"]["dedup"]["supershingles"]
    assert one["doc"]["_source"]["lang"] == "ru"


def test_verbose_shows_every_step(run):
    (one,) = run("simulate", "--verbose", stdin=json.dumps(_DOCUMENT)).json()["docs"]
    assert [step["processor_type"] for step in one["processor_results"]] == [
        "html_strip",
        "set",
        "supershingle",
        "set",
    ]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"id": "7", **_DOCUMENT}),
        json.dumps({"_id": "7", "_source": _DOCUMENT}),
        json.dumps([{"_id": "7", "_source": _DOCUMENT}]),
        json.dumps({"docs": [{"_id": "7", "_source": _DOCUMENT}]}, indent=2),
        json.dumps({"id": "7", **_DOCUMENT}) + "\n\n",
    ],
)
def test_documents_come_as_lines_as_a_list_or_as_the_request(run, text):
    Path("documents.json").write_text(text)
    (one,) = run("simulate", "documents.json").json()["docs"]
    assert one["doc"]["_id"] == "7"
    assert one["doc"]["_source"]["body"] == _DOCUMENT["body"]


def test_several_lines_are_several_documents(run):
    lines = "\n".join(json.dumps({"id": str(number), **_DOCUMENT}) for number in range(3))
    assert [one["doc"]["_id"] for one in run("simulate", stdin=lines).json()["docs"]] == ["0", "1", "2"]


def test_a_failing_document_is_in_the_answer_and_in_the_exit_code(run):
    Path("own.json").write_text(
        json.dumps({"processors": [{"fail": {"message": "not this one", "tag": "stop"}}]})
    )
    ran = run("simulate", "--pipeline", "own.json", stdin="{}")
    assert ran.code == 3
    assert "not this one" in ran.out
    assert run("simulate", "--verbose", "--pipeline", "own.json", stdin="{}").code == 3


def test_a_dropped_document_is_null_and_no_failure(run):
    Path("own.json").write_text(json.dumps({"processors": [{"drop": {}}]}))
    ran = run("simulate", "--pipeline", "own.json", stdin="{}")
    assert (ran.code, ran.json()) == (0, {"docs": [None]})


def test_a_line_that_is_no_json_is_told_with_its_number(run):
    ran = run("simulate", stdin='{"a": 1}\n{broken\n')
    assert ran.code == 1
    assert "line 2" in ran.err
