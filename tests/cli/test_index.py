"""index: what is counted, kept, refused and replayed."""

import json
import shlex
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine

_TEXT = "Мост через реку закроют на ремонт в мае, автобусы поедут в объезд по улице Садовой"


def _write(path: str, *documents: object) -> str:
    Path(path).write_text(
        "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents), "utf-8"
    )
    return path


def test_the_summary_adds_up(run, examples_file):
    told = run("index", examples_file, "--workers", 1, "--json").json()
    assert told["read"] == told["indexed"] == sum(told["languages"].values()) > 120
    assert told["dropped"] == told["failed"] == 0
    assert {"read", "index", "canon", "sketch", "total"} <= told["seconds"].keys()
    assert told["counts"]["repairs"] > 0


def test_the_summary_for_people_tells_counts_speed_and_stages(run):
    ran = run("index", _write("a.jsonl", {"id": "1", "body": _TEXT}), "--workers", 1)
    assert (ran.code, ran.err) == (0, "")
    first, second, third, *_ = ran.out.splitlines()
    assert first == "1 indexed into pages, 0 dropped, 0 failed, of 1 read"
    assert "documents/s" in second
    assert third.endswith("languages: ru 1")


def test_documents_are_found_where_settings_or_the_option_say(run, monkeypatch):
    source = _write("a.jsonl", {"id": "1", "title": "Мост", "body": _TEXT})
    assert run("index", source, "--engine", "elsewhere", "--index", "news", "--workers", 1).code == 0
    assert run("search", "мост", "--engine", "elsewhere", "--index", "news").out.startswith(" 1. Мост")
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", "elsewhere")
    assert run("search", "мост", "--index", "news").out.startswith(" 1. Мост")


def test_bad_documents_are_counted_kept_and_can_be_replayed(run):
    Path("mixed.jsonl").write_text(
        json.dumps({"id": "1", "body": _TEXT}) + "\n{broken\n" + json.dumps({"id": "2", "body": 5}) + "\n"
    )
    ran = run("index", "mixed.jsonl", "--dead-letters", "failed.jsonl", "--workers", 1)
    assert ran.code == 3
    assert "1 indexed into pages, 0 dropped, 2 failed, of 3 read" in ran.out
    assert "shinglefold index failed.jsonl --index pages --replay" in ran.out
    letters = [json.loads(line) for line in Path("failed.jsonl").read_text().splitlines()]
    assert sorted(letter["line"] for letter in letters) == [2, 3]
    for letter in letters:
        if letter.get("document"):
            letter["document"]["body"] = _TEXT
        else:
            letter["raw"] = json.dumps({"id": "3", "body": _TEXT})
    told = run("index", "--replay", _write("mended.jsonl", *letters), "--workers", 1, "--json").json()
    assert (told["indexed"], told["failed"]) == (2, 0)
    assert run("search", "мост", "--json", "--no-fold").json()["hits"]["total"]["value"] == 3


def test_a_row_of_csv_that_is_tried_again_keeps_its_reason_and_is_told_how_to_mend(run):
    Path("rows.csv").write_text("id,title,body\n1,Мост\n", "utf-8")
    run("index", "rows.csv", "--dead-letters", "dead.jsonl", "--workers", 1)
    for _ in range(2):
        ran = run("index", "--replay", "dead.jsonl", "--json", "--workers", 1)
        (reason,) = ran.json()["reasons"]
        assert reason.startswith("2 values in a row, the header has 3; to correct it, replace")
        assert reason.count("to correct it") == 1
    letter = json.loads(Path("dead.jsonl").read_text())
    del letter["raw"]
    _write("dead.jsonl", {**letter, "document": {"id": "1", "title": "Мост", "body": _TEXT}})
    assert (run("index", "--replay", "dead.jsonl", "--workers", 1).code, Path("dead.jsonl").exists()) == (
        0,
        False,
    )


def test_ids_under_another_spelling_are_told_with_a_command_that_takes_them(run):
    Path("odd.csv").write_text(f'ID,title,body\n1,Мост,"{_TEXT}"\n2,Мост,"{_TEXT}"\n', "utf-8")
    told = run("index", "odd.csv", "--workers", 1).err
    assert "no document has an id, so that the next run stores them once more" in told
    (command,) = [line.partition("alone: ")[2] for line in told.splitlines() if "alone: " in line]
    assert command == "shinglefold index odd.csv --workers 1 --id-field ID --recreate"
    for arguments in (shlex.split(command)[1:], ["index", "odd.csv", "--id-field", "ID", "--workers", 1]):
        ran = run(*arguments)
        assert (ran.code, ran.err) == (0, "")
    assert run("stats", "pages", "--json").json()["indices"][0]["documents"] == 2


def test_the_command_for_a_file_of_documents_names_the_index_that_retry_was_given(run):
    path = _write("my pages.jsonl", {"id": "1", "body": "one"})
    ran = run("index", "--replay", path, "--index", "news", "--engine", "folder")
    assert ran.code == 1
    assert "indexed with: shinglefold index 'my pages.jsonl' --index news --engine folder" in ran.err


def test_dead_letters_are_not_mixed_into_a_source(run):
    path = _write("pages.jsonl", {"id": "1", "body": "one"})
    Path(path).write_text(Path(path).read_text() + "{\n")
    before = Path(path).read_bytes()
    for name in (path, Path(path).resolve()):
        ran = run("index", path, "--dead-letters", name, "--workers", 1)
        assert ran.code == 2
        assert "is a source" in ran.err
    assert Path(path).read_bytes() == before
    replayed = run("index", "--replay", path, "--dead-letters", path, "--workers", 1)
    assert (replayed.code, "leave --dead-letters out" in replayed.err) == (2, True)


def test_another_scheme_is_refused_and_recreate_starts_afresh(run):
    source = _write("a.jsonl", {"id": "1", "body": _TEXT})
    assert run("index", source, "--workers", 1).code == 0
    refused = run("index", source, "--preset", "classic", "--workers", 1)
    assert refused.code == 1
    assert "preset default" in refused.err
    assert "classic (--preset)" in refused.err
    assert run("index", source, "--preset", "classic", "--recreate", "--workers", 1).code == 0
    assert run("search", "мост", "--json").json()["dedup"]["folded"] == 0


def test_fingerprints_are_kept_in_the_field_the_settings_name(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "near")
    run("index", _write("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT}), "--workers", 1)
    assert run("search", "мост", "--json").json()["dedup"]["folded"] == 1
    assert run("compare", "1", "2", "--index", "pages", "--json").json()["folds"]


def test_an_index_of_another_preset_is_searched_by_its_own_scheme(run):
    source = _write("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT})
    run("index", source, "--preset", "classic", "--workers", 1)
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
    source = _write("a.jsonl", {"id": "1", "text": _TEXT}, {"id": "2", "text": _TEXT, "secret": True})
    told = run("index", source, "--pipeline", "own.json", "--workers", 1, "--json").json()
    assert (told["indexed"], told["dropped"]) == (1, 1)
    assert "мост" in run("search", "мост", "--field", "text", "--json").out.lower()


@pytest.mark.parametrize(
    ("text", "told"),
    [("{broken", "no JSON"), ("[]", "processors"), ('{"processors": [{"dorp": {}}]}', "drop")],
)
def test_a_pipeline_that_can_not_be_meant_is_refused(run, text, told):
    Path("own.json").write_text(text)
    ran = run("index", "-", "--pipeline", "own.json")
    assert ran.code == 2
    assert told in ran.err


def test_the_lexicon_is_kept_between_runs_where_a_file_is_set(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "lexicon.npz")
    source = _write("a.jsonl", {"id": "1", "body": _TEXT})
    for _ in range(2):
        assert run("index", source, "--workers", 1).code == 0
        assert Path("lexicon.npz").stat().st_size > 500


def test_a_lexicon_that_can_not_be_kept_costs_no_run(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "no/such/folder/lexicon")
    ran = run("index", _write("a.jsonl", {"id": "1", "body": _TEXT}), "--workers", 1)
    assert ran.code == 0
    assert ran.out.startswith("1 indexed")
    assert ran.err.startswith("note: the lexicon can't be saved to no/such/folder/lexicon")


def test_a_record_without_the_field_named_for_ids_fails_and_is_mended_by_retry(run):
    source = _write("a.jsonl", {"url": "u", "body": _TEXT}, {"id": "2", "body": _TEXT})
    ran = run("index", source, "--id-field", "url", "--dead-letters", "failed.jsonl", "--workers", 1)
    assert ran.code == 3
    assert "1 indexed into pages, 0 dropped, 1 failed, of 2 read" in ran.out
    assert "failed once: no [url], the id field; add it or name another" in ran.out
    assert run("index", "--replay", "failed.jsonl", "--workers", 1).code == 1
    letter = json.loads(Path("failed.jsonl").read_text())
    _write("failed.jsonl", letter | {"raw": json.dumps({"url": "v", "body": _TEXT})})
    assert run("index", "--replay", "failed.jsonl", "--workers", 1).code == 0
    hits = run("search", "мост", "--json", "--no-fold").json()["hits"]["hits"]
    assert sorted(hit["_id"] for hit in hits) == ["u", "v"]


def test_ids_from_a_field_no_record_has_index_nothing(run):
    source = _write("a.jsonl", {"id": "1", "body": _TEXT}, {"id": "2", "body": _TEXT})
    ran = run("index", source, "--id-field", "ulr", "--workers", 1)
    assert ran.code == 1
    assert "failed twice: no [ulr]" in ran.out


def test_numbers_json_has_not_fail_at_reading_and_are_kept_as_written(run):
    lines = [f'{{"id": "1", "body": "{_TEXT}", "n": 1e999}}', f'{{"id": "2", "body": "{_TEXT}", "n": 1e30}}']
    Path("a.jsonl").write_text("\n".join(lines), "utf-8")
    ran = run("index", "a.jsonl", "--dead-letters", "failed.jsonl", "--workers", 1)
    assert ran.code == 3
    assert "failed once: a number too large for JSON" in ran.out
    letter = json.loads(Path("failed.jsonl").read_text(), parse_constant=pytest.fail)
    assert (letter["stage"], letter["raw"]) == ("read", lines[0])


def test_a_rebuilding_that_brings_nothing_in_never_advises_to_delete_the_index_that_stays(run):
    assert run("index", _write("a.jsonl", {"id": "1", "body": _TEXT}), "--workers", 1).code == 0
    _write("bad.jsonl", {"id": "1", "body": _TEXT, "price": "cheap"})
    Path("types.json").write_text('{"price": {"type": "float"}}')
    ran = run("index", "bad.jsonl", "--recreate", "--mapping", "types.json", "--workers", 1)
    assert ran.code == 1
    assert "pages is as it was" in ran.err
    assert "delete" not in ran.out + ran.err


def test_a_recreated_index_keeps_the_fields_that_a_mapping_gave_it(run, tmp_path):
    kept = {"seen": {"type": "keyword"}, "raw": {"type": "object", "enabled": False}}
    kept["host"] = {"type": "keyword", "ignore_above": 20}
    Path("types.json").write_text(json.dumps(kept))
    page = {"id": "1", "body": "the bridge is closed", "seen": "2026-11-23", "raw": {"n": 1}, "price": 5}
    Path("d.jsonl").write_text(json.dumps(page))
    assert run("index", "d.jsonl", "--mapping", "types.json", "--workers", 1).code == 0
    page["price"] = "free"
    Path("d.jsonl").write_text(json.dumps(page))
    Path("types.json").write_text('{"host": {"type": "text"}}')
    for more, host in (([], kept["host"]), (["--mapping", "types.json"], {"type": "text"})):
        assert run("index", "d.jsonl", "--recreate", "--workers", 1, *more).code == 0
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
    first = run("index", tmp_path / "cards.jsonl", "--index", "cards", "--workers", 1)
    assert "setup cards --profile products && shinglefold backfill cards" in first.err
    assert "1 result" in run("search", "--index", "cards", "кроссовки").out
    assert "--profile products" in run("doctor", "cards").out
    assert run("setup", "cards", "--profile", "products").code == 0
    assert run("backfill", "cards", "--workers", 1).code == 0
    assert "6 results from 6 hits" in run("search", "--index", "cards", "кроссовки").out
    told = run("index", tmp_path / "cards.jsonl", "--index", "cards", "--never-differ", "colour")
    assert (told.code, "--never-differ colour" in told.err) == (1, True)
    again = run("index", tmp_path / "cards.jsonl", "--index", "cards", "--workers", 1)
    assert "--profile" not in again.err
    assert run("doctor", "cards").out.endswith("all is well\n")


def test_an_index_in_the_place_of_a_source_is_told_with_the_command(run):
    source = _write("a.jsonl", {"id": "1", "title": "Мост", "body": _TEXT})
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
    source = _write("a.jsonl", {"id": "1", "body": _TEXT, "lang": "ua"})
    ran = run("index", source, "--pipeline", "labels.json", "--workers", 1)
    assert "unknown language: 1 (" in ran.out
    assert "uk and zh, not ua and cn" in ran.out
