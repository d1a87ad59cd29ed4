"""index --dry-run: what the pipeline makes of documents, in the shape of the servers' own request."""

import json
from pathlib import Path

_DOCUMENT = {"id": "7", "title": "Мост", "body": "Мост через реку закроют на ремонт в мае"}


def _answer(run, *arguments, stdin="", code=0):
    ran = run("index", "-", "--dry-run", *arguments, stdin=stdin or json.dumps(_DOCUMENT))
    assert ran.code == code
    return ran.json()["docs"]


def test_the_default_pipeline_fingerprints_and_nothing_is_written(run):
    (one,) = _answer(run)
    assert one["doc"]["_id"] == "7"
    assert one["doc"]["_source"]["title"] == "Мост"
    assert one["doc"]["_source"]["_dedup"]["supershingles"]
    assert one["doc"]["_source"]["_dedup"]["lang"] == "ru"
    assert not Path(".shinglefold").exists()


def test_verbose_shows_every_step(run):
    text = json.loads(json.dumps(_DOCUMENT)) | {"format": "html"}
    page = [{"html_strip": {"field": "body"}}, {"set": {"field": "seen", "value": 1}}]
    definition = {
        "processors": [*page, {"supershingle": {"field": "body"}}, {"drop": {"if": "ctx.seen == 2"}}]
    }
    Path("page.json").write_text(json.dumps(definition))
    (one,) = _answer(run, "--verbose", "--pipeline", "page.json", stdin=json.dumps(text))
    steps = [step["processor_type"] for step in one["processor_results"]]
    assert steps == ["html_strip", "set", "supershingle", "drop"]


def test_several_lines_are_several_documents(run):
    lines = "\n".join(json.dumps({**_DOCUMENT, "id": str(number)}) for number in range(3))
    assert [one["doc"]["_id"] for one in _answer(run, stdin=lines)] == ["0", "1", "2"]


def test_the_pipeline_of_an_index_that_is_there_is_used(run):
    Path("pages.jsonl").write_text(json.dumps({"id": "1", "headline": "Мост через реку закрыли"}) + "\n")
    assert run("index", "pages.jsonl", "--field", "headline", "--workers", 1).code == 0
    (one,) = _answer(run, stdin=json.dumps({"id": "2", "headline": "Мост через реку закроют на ремонт"}))
    assert one["doc"]["_source"]["_dedup"]["shingles"] > 3


def test_failing_and_dropped_documents_are_in_the_answer(run):
    step = {"supershingle": {"fields": ["body"]}}
    Path("fail.json").write_text(json.dumps({"processors": [{"fail": {"message": "not this one"}}, step]}))
    Path("drop.json").write_text(json.dumps({"processors": [{"drop": {}}, step]}))
    assert "not this one" in json.dumps(_answer(run, "--pipeline", "fail.json", code=3))
    assert "not this one" in json.dumps(_answer(run, "--pipeline", "fail.json", "--verbose", code=3))
    assert _answer(run, "--pipeline", "drop.json") == [None]


def test_a_line_that_is_no_document_is_told_with_its_number(run):
    good, bad = _answer(run, stdin=json.dumps(_DOCUMENT) + "\n{broken\n", code=3)
    assert good["doc"]["_id"] == "7"
    assert ":2: " in bad["error"]["reason"]
