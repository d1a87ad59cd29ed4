"""index: what is counted, kept, refused and replayed; --dry-run shows what a pipeline makes of documents."""

import json
import shlex
from pathlib import Path

import pytest
from support.commands import write_lines

from shinglefold.engines.embedded import EmbeddedEngine

_TEXT = "Мост через реку закроют на ремонт в мае, автобусы поедут в объезд по улице Садовой"


def test_the_summary_adds_up(run, examples_file):
    told = run("index", examples_file, "--json").json()
    assert told["read"] == told["indexed"] == sum(told["languages"].values()) > 120
    assert told["dropped"] == told["failed"] == 0
    assert {"read", "index", "canon", "sketch", "total"} <= told["seconds"].keys()
    assert told["counts"]["repairs"] > 0


def test_the_summary_for_people_tells_counts_speed_and_stages(run):
    ran = run("index", write_lines("a.jsonl", {"id": "1", "body": _TEXT}))
    assert (ran.code, ran.err) == (0, "")
    first, second, third, *_ = ran.out.splitlines()
    assert first == "1 indexed into pages, 0 dropped, 0 failed, of 1 read"
    assert "documents/s" in second
    assert third.endswith("languages: ru 1")


def test_documents_are_found_where_settings_or_the_option_say(run, monkeypatch):
    source = write_lines("a.jsonl", {"id": "1", "title": "Мост", "body": _TEXT})
    assert run("index", source, "--engine", "elsewhere", "--index", "news").code == 0
    assert run("search", "мост", "--engine", "elsewhere", "--index", "news").out.startswith(" 1. Мост")
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", "elsewhere")
    assert run("search", "мост", "--index", "news").out.startswith(" 1. Мост")


def test_bad_documents_are_counted_kept_and_can_be_replayed(run):
    Path("mixed.jsonl").write_text(
        json.dumps({"id": "1", "body": _TEXT}) + "\n{broken\n" + json.dumps({"id": "2", "body": 5}) + "\n"
    )
    ran = run("index", "mixed.jsonl", "--dead-letters", "failed.jsonl").check(3)
    assert "1 indexed into pages, 0 dropped, 2 failed, of 3 read" in ran.out
    assert "shinglefold index failed.jsonl --index pages --replay" in ran.out
    letters = [json.loads(line) for line in Path("failed.jsonl").read_text().splitlines()]
    assert sorted(letter["line"] for letter in letters) == [2, 3]
    for letter in letters:
        if letter.get("document"):
            letter["document"]["body"] = _TEXT
        else:
            letter["raw"] = json.dumps({"id": "3", "body": _TEXT})
    told = run("index", "--replay", write_lines("mended.jsonl", *letters), "--json").json()
    assert (told["indexed"], told["failed"]) == (2, 0)
    assert run("search", "мост", "--json", "--no-fold").json()["hits"]["total"]["value"] == 3


def test_a_row_of_csv_that_is_tried_again_keeps_its_reason_and_is_told_how_to_mend(run):
    Path("rows.csv").write_text("id,title,body\n1,Мост\n", "utf-8")
    run("index", "rows.csv", "--dead-letters", "dead.jsonl")
    for _ in range(2):
        ran = run("index", "--replay", "dead.jsonl", "--json")
        (reason,) = ran.json()["reasons"]
        assert reason.startswith("2 values in a row, the header has 3; to correct it, replace")
        assert reason.count("to correct it") == 1
    letter = json.loads(Path("dead.jsonl").read_text())
    del letter["raw"]
    write_lines("dead.jsonl", {**letter, "document": {"id": "1", "title": "Мост", "body": _TEXT}})
    assert (run("index", "--replay", "dead.jsonl").code, Path("dead.jsonl").exists()) == (
        0,
        False,
    )


def test_ids_under_another_spelling_are_told_with_a_command_that_takes_them(run):
    Path("odd.csv").write_text(f'ID,title,body\n1,Мост,"{_TEXT}"\n2,Мост,"{_TEXT}"\n', "utf-8")
    told = run("index", "odd.csv", "--workers", 1).err
    assert "no document has an id, so that the next run stores them once more" in told
    (command,) = [line.partition("alone: ")[2] for line in told.splitlines() if "alone: " in line]
    assert command == "shinglefold index odd.csv --workers 1 --id-field ID --recreate"
    for arguments in (shlex.split(command)[1:], ["index", "odd.csv", "--id-field", "ID"]):
        ran = run(*arguments)
        assert (ran.code, ran.err) == (0, "")
    assert run("stats", "pages", "--json").json()["indices"][0]["documents"] == 2


def test_the_command_for_a_file_of_documents_names_the_index_that_retry_was_given(run):
    path = write_lines("my pages.jsonl", {"id": "1", "body": "one"})
    run("index", "--replay", path, "--index", "news", "--engine", "folder").check(
        1, "indexed with: shinglefold index 'my pages.jsonl' --index news --engine folder"
    )


def test_dead_letters_are_not_mixed_into_a_source(run):
    path = write_lines("pages.jsonl", {"id": "1", "body": "one"})
    Path(path).write_text(Path(path).read_text() + "{\n")
    before = Path(path).read_bytes()
    for name in (path, Path(path).resolve()):
        run("index", path, "--dead-letters", name).check(2, "is a source")
    assert Path(path).read_bytes() == before
    run("index", "--replay", path, "--dead-letters", path).check(2, "leave --dead-letters out")


def test_another_scheme_is_refused_and_recreate_starts_afresh(run):
    source = write_lines("a.jsonl", {"id": "1", "body": _TEXT})
    assert run("index", source).code == 0
    run("index", source, "--preset", "classic").check(1, "preset default", "classic (--preset)")
    assert run("index", source, "--preset", "classic", "--recreate").code == 0
    assert run("search", "мост", "--json").json()["dedup"]["folded"] == 0


def test_fingerprints_are_kept_in_the_field_the_settings_name(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "near")
    run("index", write_lines("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT}))
    assert run("search", "мост", "--json").json()["dedup"]["folded"] == 1
    assert run("compare", "1", "2", "--index", "pages", "--json").json()["folds"]


def test_an_index_of_another_preset_is_searched_by_its_own_scheme(run):
    source = write_lines("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT})
    run("index", source, "--preset", "classic")
    assert run("search", "мост", "--json").json()["dedup"]["folded"] == 1


def test_a_pipeline_of_ones_own_is_used(run):
    Path("own.json").write_text(
        json.dumps(
            {
                "processors": [
                    {"drop": {"if": "ctx.secret == true"}},
                    {"supershingle": {"field": "text", "target_field": "_dedup"}},
                ]
            }
        )
    )
    source = write_lines("a.jsonl", {"id": "1", "text": _TEXT}, {"id": "2", "text": _TEXT, "secret": True})
    told = run("index", source, "--pipeline", "own.json", "--json").json()
    assert (told["indexed"], told["dropped"]) == (1, 1)
    assert "мост" in run("search", "мост", "--field", "text", "--json").out.lower()


@pytest.mark.parametrize(
    ("text", "told"),
    [("{broken", "no JSON"), ("[]", "processors"), ('{"processors": [{"dorp": {}}]}', "drop")],
)
def test_a_pipeline_that_can_not_be_meant_is_refused(run, text, told):
    Path("own.json").write_text(text)
    run("index", "-", "--pipeline", "own.json").check(2, told)


def test_the_lexicon_is_kept_between_runs_where_a_file_is_set(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "lexicon.npz")
    source = write_lines("a.jsonl", {"id": "1", "body": _TEXT})
    for _ in range(2):
        assert run("index", source).code == 0
        assert Path("lexicon.npz").stat().st_size > 500


def test_a_lexicon_that_can_not_be_kept_costs_no_run(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "no/such/folder/lexicon")
    ran = run("index", write_lines("a.jsonl", {"id": "1", "body": _TEXT})).check(0)
    assert ran.out.startswith("1 indexed")
    assert ran.err.startswith("note: the lexicon can't be saved to no/such/folder/lexicon")


def test_a_record_without_the_field_named_for_ids_fails_and_is_mended_by_retry(run):
    source = write_lines("a.jsonl", {"url": "u", "body": _TEXT}, {"id": "2", "body": _TEXT})
    ran = run("index", source, "--id-field", "url", "--dead-letters", "failed.jsonl").check(3)
    assert "1 indexed into pages, 0 dropped, 1 failed, of 2 read" in ran.out
    assert "failed once: no [url], the id field; add it or name another" in ran.out
    assert run("index", "--replay", "failed.jsonl").code == 1
    letter = json.loads(Path("failed.jsonl").read_text())
    write_lines("failed.jsonl", letter | {"raw": json.dumps({"url": "v", "body": _TEXT})})
    assert run("index", "--replay", "failed.jsonl").code == 0
    hits = run("search", "мост", "--json", "--no-fold").json()["hits"]["hits"]
    assert sorted(hit["_id"] for hit in hits) == ["u", "v"]


def test_ids_from_a_field_no_record_has_index_nothing(run):
    source = write_lines("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT})
    ran = run("index", source, "--id-field", "ulr").check(1)
    assert "failed twice: no [ulr]" in ran.out


def test_numbers_json_has_not_fail_at_reading_and_are_kept_as_written(run):
    lines = [f'{{"id": "1", "body": "{_TEXT}", "n": 1e999}}', f'{{"id": "2", "body": "{_TEXT}", "n": 1e30}}']
    Path("a.jsonl").write_text("\n".join(lines), "utf-8")
    ran = run("index", "a.jsonl", "--dead-letters", "failed.jsonl").check(3)
    assert "failed once: a number too large for JSON" in ran.out
    letter = json.loads(Path("failed.jsonl").read_text(), parse_constant=pytest.fail)
    assert (letter["stage"], letter["raw"]) == ("read", lines[0])


def test_a_rebuilding_that_brings_nothing_in_never_advises_to_delete_the_index_that_stays(run):
    assert run("index", write_lines("a.jsonl", {"id": "1", "body": _TEXT})).code == 0
    write_lines("bad.jsonl", {"id": "1", "body": _TEXT, "price": "cheap"})
    Path("types.json").write_text('{"price": {"type": "float"}}')
    ran = run("index", "bad.jsonl", "--recreate", "--mapping", "types.json").check(1, "pages is as it was")
    assert "delete" not in ran.out + ran.err


def test_a_recreated_index_keeps_the_fields_that_a_mapping_gave_it(run, tmp_path):
    kept = {"seen": {"type": "keyword"}, "raw": {"type": "object", "enabled": False}}
    kept["host"] = {"type": "keyword", "ignore_above": 20}
    Path("types.json").write_text(json.dumps(kept))
    page = {"id": "1", "body": "the bridge is closed", "seen": "2026-11-23", "raw": {"n": 1}, "price": 5}
    Path("d.jsonl").write_text(json.dumps(page))
    assert run("index", "d.jsonl", "--mapping", "types.json").code == 0
    page["price"] = "free"
    Path("d.jsonl").write_text(json.dumps(page))
    Path("types.json").write_text('{"host": {"type": "text"}}')
    for more, host in (([], kept["host"]), (["--mapping", "types.json"], {"type": "text"})):
        assert run("index", "d.jsonl", "--recreate", *more).code == 0
        with EmbeddedEngine(".shinglefold", str.split) as engine:
            there = engine.mappings("pages")["properties"]
        assert {name: there[name] for name in kept} == {**kept, "host": host}
        # A type that was guessed is guessed again.
        assert there["price"]["type"] == "text"


def test_a_profile_is_suggested_for_cards_and_keeps_sizes_apart(run, tmp_path):
    card = (
        "Мужские кроссовки Волна, размер {}, 2 пары шнурков, цвет чёрный, верх из сетки, подошва из полимера"
    )
    rows = [json.dumps({"id": str(size), "title": "", "body": card.format(size)}) for size in range(40, 46)]
    (tmp_path / "cards.jsonl").write_text("\n".join(rows), "utf-8")
    first = run("index", tmp_path / "cards.jsonl", "--index", "cards")
    assert "setup cards --profile products && shinglefold backfill cards" in first.err
    assert "1 result" in run("search", "--index", "cards", "кроссовки").out
    assert "--profile products" in run("doctor", "cards").out
    assert run("setup", "cards", "--profile", "products").code == 0
    assert run("backfill", "cards").code == 0
    assert "6 results from 6 hits" in run("search", "--index", "cards", "кроссовки").out
    run("index", tmp_path / "cards.jsonl", "--index", "cards", "--never-differ", "colour").check(
        1, "--never-differ colour"
    )
    again = run("index", tmp_path / "cards.jsonl", "--index", "cards")
    assert "--profile" not in again.err
    assert run("doctor", "cards").out.endswith("all is well\n")


def test_an_index_in_the_place_of_a_source_is_told_with_the_command(run):
    source = write_lines("a.jsonl", {"id": "1", "title": "Мост", "body": _TEXT})
    for name in ("index", "add"):
        ran = run(name, source, "site")
        assert ran.code
        assert f"If 'site' is the index: shinglefold {name} a.jsonl --index site" in ran.err
    assert run("index", source, "b.jsonl").err == (
        "error: cannot read b.jsonl: no such file or folder; check the path\n"
    )


def test_a_label_of_no_language_is_counted_with_what_labels_are(run):
    pipeline = {"supershingle": {"field": "body", "language_field": "lang"}}
    Path("labels.json").write_text(json.dumps({"processors": [pipeline]}))
    source = write_lines("a.jsonl", {"id": "1", "body": _TEXT, "lang": "ua"})
    ran = run("index", source, "--pipeline", "labels.json")
    assert "unknown language: 1 (" in ran.out
    assert "uk and zh, not ua and cn" in ran.out


_DOCUMENT = {"id": "7", "title": "Мост", "body": "Мост через реку закроют на ремонт в мае"}


def _answer(run, *arguments, stdin="", code=0):
    ran = run("index", "-", "--dry-run", *arguments, stdin=stdin or json.dumps(_DOCUMENT)).check(code)
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
    assert run("index", "pages.jsonl", "--field", "headline").code == 0
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
