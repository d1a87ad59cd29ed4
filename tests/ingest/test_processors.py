from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.ingest import Fingerprinter, Pipeline

Run = Callable[..., Any]
Make = Callable[..., Pipeline]
PAGE = "<html><body><p>Большая сл<b>он</b>иха идёт к реке.</p><p>Дети смотрят на неё.</p></body></html>"


def test_html_strip_leaves_what_a_reader_sees(run_one: Run):
    done = run_one({"body": PAGE}, {"html_strip": {"field": "body", "target_field": "text"}}).document
    assert done["text"] == strip_html(PAGE)
    assert "слониха" in done["text"]
    assert done["body"] == PAGE


@pytest.mark.parametrize("body", [5, 1.5, True, ["text"], {"text": "x"}])
@pytest.mark.parametrize("processor", ["html_strip", "detect_language", "canonicalize", "supershingle"])
def test_a_field_that_is_no_text_fails_the_document_and_says_what_it_is(
    run_one: Run, processor: str, body: object
):
    outcome = run_one({"body": body}, {processor: {"field": "body"}})
    assert outcome.status == "failed"
    assert outcome.failure.processor == processor
    assert "field [body] is a" in outcome.failure.reason


@pytest.mark.parametrize("document", [{}, {"body": None}])
@pytest.mark.parametrize("processor", ["html_strip", "detect_language", "canonicalize"])
def test_a_missing_field_fails_unless_it_may_be_missing(run_one: Run, processor: str, document: dict):
    assert run_one(document, {processor: {"field": "body"}}).status == "failed"
    allowed = run_one(document, {processor: {"field": "body", "ignore_missing": True}})
    assert allowed.document == document


def test_broken_html_is_no_failure(run_one: Run):
    for html in (
        "<p><b>раз<p>два</i",
        "<<<>>>",
        "<script>x",
        "<!--",
        "&#xD800;&#0;",
        "\ud800<p>\0",
        "<" * 5000,
    ):
        assert run_one({"body": html}, {"html_strip": {"field": "body"}}).status == "done"


def test_detect_language_can_keep_a_declared_one(run_one: Run):
    detect = {"detect_language": {"fields": ["title", "body"]}}
    ukrainian = {"title": "Їжак", "body": "живе у лісі"}
    assert run_one(ukrainian, detect).document["language"] == "uk"
    keep = {"detect_language": {"field": "body", "target_field": "lang", "override": False}}
    assert run_one({**ukrainian, "lang": "ru"}, keep).document["lang"] == "ru"
    assert run_one({"body": "... 123"}, keep).document["lang"] == "und"


def test_canonicalize_writes_tokens_to_search_by(run_one: Run, canonicalizer: Canonicalizer):
    text = "Мамы мыли рамы."
    done = run_one({"body": text}, {"canonicalize": {"field": "body"}}).document
    assert done["canonical"].split(" ") == [token.text for token in canonicalizer.tokens(text)]


def test_supershingle_joins_fields_by_a_newline(run_one: Run, fingerprinter: Fingerprinter):
    document = {"title": "Первый снег", "body": "Сегодня в городе выпал первый снег и стало тихо"}
    done = run_one(document, {"supershingle": {"fields": ["title", "body"]}}).document
    (alone,) = fingerprinter.fingerprint(["\n".join(document.values())])
    assert done["_dedup"] == alone.to_field()


def test_supershingle_gives_a_document_without_text_a_field_without_a_signature(run_one: Run):
    done = run_one({"other": 1}, {"supershingle": {"field": "body"}}).document
    assert done["_dedup"].keys() == {"scheme", "lang", "shingles", "digest"}
    assert done["_dedup"]["digest"].endswith(".und.0.")
    strict = run_one({"other": 1}, {"supershingle": {"field": "body", "ignore_missing": False}})
    assert strict.status == "failed"


def test_one_bad_document_does_not_spoil_its_block(make_pipeline: Make):
    bodies = ["первый текст из нескольких слов", 5, "второй текст из нескольких слов", [], None]
    pipeline = make_pipeline({"supershingle": {"field": "body"}})
    outcomes = list(pipeline.run([{"_id": str(n), "body": body} for n, body in enumerate(bodies)]))
    assert [outcome.status for outcome in outcomes] == ["done", "failed", "done", "failed", "done"]
    assert [outcome.document["_id"] for outcome in outcomes if outcome.document] == ["0", "2", "4"]


@pytest.mark.parametrize("declared", ["ru", "ru-RU", "ru_RU", "RU"])
def test_a_declared_language_is_recorded_and_changes_nothing_else_of_a_fingerprint(
    run_one: Run, fingerprinter: Fingerprinter, declared: str
):
    text = "мова слово текст без знаків"
    step = {"supershingle": {"field": "body", "language_field": "lang"}}
    done = run_one({"body": text, "lang": declared}, step).document
    (alone,) = fingerprinter.fingerprint([text])
    assert (alone.lang, done["_dedup"]["lang"]) == ("uk", "ru")
    assert done["_dedup"] == replace(alone, lang="ru").to_field()


def test_a_text_without_words_has_no_language_whatever_it_declares(run_one: Run):
    step = {"supershingle": {"field": "body", "language_field": "lang"}}
    assert run_one({"body": "!?", "lang": "ru"}, step).document["_dedup"]["lang"] == "und"


@pytest.mark.parametrize("declared", ["xx", "Klingon", 5, ["ru"], {"code": "ru"}])
def test_an_unknown_declared_language_is_replaced_by_detection_and_counted(
    make_pipeline: Make, declared: object
):
    pipeline = make_pipeline({"supershingle": {"field": "body", "language_field": "lang"}})
    pipeline.meter.take()
    outcome, _ = pipeline.run([{"body": "Мама мыла раму утром", "lang": one} for one in (declared, "")])
    assert outcome.document["_dedup"]["lang"] == "ru"
    assert pipeline.meter.counts["unknown_language"] == 1


def test_an_unknown_language_in_the_options_is_refused(make_pipeline: Make):
    for processor in ("supershingle", "canonicalize"):
        with pytest.raises(UnknownLanguage, match=r"'rus'.*did you mean 'ru'"):
            make_pipeline({processor: {"field": "body", "language": "rus"}})


def test_set_writes_values_templates_and_copies(run_one: Run):
    document = {"_id": "7", "a": {"b": "x"}, "tags": ["t"], "empty": ""}
    done = run_one(
        document,
        {"set": {"field": "url", "value": "https://host/{{{a.b}}}/{{_id}}"}},
        {"set": {"field": "deep.copy", "copy_from": "tags"}},
        {"set": {"field": "a.b", "value": "no", "override": False}},
        {"set": {"field": "count", "value": 3}},
        {"set": {"field": "gone", "copy_from": "empty", "ignore_empty_value": True}},
        {"set": {"field": "gone", "copy_from": "missing", "ignore_empty_value": True}},
        {"set": {"field": "list", "value": ["{{{a.b}}}", 1, {"x": "{{count}}"}]}},
    ).document
    assert done["url"] == "https://host/x/7"
    assert done["deep"]["copy"] == ["t"]
    assert done["deep"]["copy"] is not document["tags"]
    assert (done["a"]["b"], done["count"]) == ("x", 3)
    assert done["list"] == ["x", 1, {"x": "3"}]
    assert "gone" not in done
    assert run_one(document, {"set": {"field": "x", "copy_from": "missing"}}).status == "failed"
    assert run_one(document, {"set": {"field": "empty.x", "value": 1}}).status == "failed"


def test_remove_takes_fields_out(run_one: Run):
    document = {"a": 1, "b": {"c": 2, "d": 3}}
    assert run_one(document, {"remove": {"field": ["a", "b.c"]}}).document == {"b": {"d": 3}}
    failed = run_one(document, {"remove": {"field": "no"}})
    assert failed.failure.reason == "field [no] is missing"
    assert run_one(document, {"remove": {"field": "no", "ignore_missing": True}}).document == document


def test_drop_and_fail_do_what_they_say(run_one: Run):
    assert run_one({"a": 1}, {"drop": {}}).status == "dropped"
    failed = run_one({"a": 1}, {"fail": {"message": "a is {{{a}}}", "tag": "stop"}})
    assert str(failed.failure) == "fail [stop]: a is 1"


@pytest.mark.parametrize(
    ("processor", "told"),
    [
        ({"html_strp": {"field": "x"}}, r"html_strp'; did you mean 'html_strip'"),
        (
            {"html_strip": {"feild": "x", "field": "x"}},
            r"processors\[0\] html_strip\).*'feild'; did you mean 'field'",
        ),
        ({"html_strip": {"feild": "x", "field": "x", "tag": "t"}}, "tag 't'"),
        ({"html_strip": {}}, "'field' is required"),
        (
            {"html_strip": {"field": 5}},
            r"processors\[0\] html_strip: 'field': expected text that is not empty, got 5",
        ),
        (
            {"html_strip": {"field": "x", "ignore_missing": "yes"}},
            "'ignore_missing': expected true or false, got 'yes'",
        ),
        ({"supershingle": {}}, "'field' or 'fields' is required"),
        ({"supershingle": {"field": "a", "fields": ["b"]}}, "exactly one of"),
        ({"supershingle": {"fields": []}}, "a list of names"),
        ({"set": {"field": "x"}}, "exactly one of 'value' and 'copy_from'"),
        ({"set": {"field": "x", "value": 1, "copy_from": "y"}}, "exactly one of"),
        ({"fail": {}}, "'message' is required"),
        ({"drop": {"why": 1}}, "unknown option"),
        ({"drop": []}, "expected an object of options"),
        ({"drop": {}, "fail": {}}, "one key"),
        ("drop", "one key"),
        ({"drop": {"if": "ctx.a ="}}, "the condition"),
        ({"drop": {"on_failure": []}}, "must not be empty"),
        ({"drop": {"on_failure": [{"dorp": {}}]}}, r"processors\[0\]\.on_failure\[0\]"),
    ],
)
def test_an_invalid_pipeline_is_refused_with_the_place_of_the_error(
    make_pipeline: Make, processor: Any, told: str
):
    with pytest.raises(ConfigError, match=told):
        make_pipeline(processor)
