"""Pipelines of the server that take the fingerprint from documents, or change a text after it was signed."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.maintenance import mapped, pages
from support.servers.faulty import relay

import shinglefold
from shinglefold.cli.main import main

PROCESSORS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "harmless": ({"set": {"field": "seen", "value": "yes"}}, {}),
    "removed": ({"remove": {"field": "_dedup"}}, {"fingerprints_lost": 30}),
    "renamed": ({"rename": {"field": "_dedup", "target_field": "kept"}}, {"fingerprints_lost": 30}),
    "removed from some": (
        {"remove": {"field": "_dedup", "if": "ctx.title == 'Страница 7'"}},
        {"fingerprints_lost": 1},
    ),
    "a part removed": (
        {"remove": {"field": "_dedup.signature", "ignore_missing": True}},
        {"fingerprints_lost": 27},
    ),
    "another text": ({"set": {"field": "title", "value": "{{{title}}}, again"}}, {"texts_changed": 30}),
}


@pytest.fixture
def piped(new_index, scheme, ingest_pipeline, request) -> tuple[str, dict[str, int]]:
    """An index with a pipeline of one processor, and the counts that it causes."""
    setting, name = request.param
    processor, counts = PROCESSORS[name]
    return new_index(mapped(scheme), {setting: ingest_pipeline(processor), "number_of_replicas": 0}), counts


@pytest.mark.parametrize("piped", [("default_pipeline", "harmless")], indirect=True, ids=str)
@pytest.mark.parametrize("fault", [403, 503])
def test_documents_that_can_not_be_read_back_are_told_and_the_run_goes_on(
    server, piped, capsys, tmp_path, fault
):
    index, _ = piped
    place = tmp_path / "pages.jsonl"
    place.write_text("".join(json.dumps(one) + "\n" for one in pages(30)))
    with relay(server.url, of="/_mget") as proxy:
        proxy.faults = [fault] * 9
        command = ["index", str(place), "--index", index, "--engine", proxy.url, "--workers", "1"]
        code, told = main(command), capsys.readouterr().out
        assert proxy.spoilt == proxy.asked
    assert code == 3
    assert "30 indexed" in told
    assert "30 documents are stored and could not be read again" in told
    assert f"shinglefold backfill {index} --engine {proxy.url}" in told


@pytest.mark.parametrize(
    "piped",
    [("default_pipeline", name) for name in PROCESSORS] + [("final_pipeline", "removed")],
    indirect=True,
    ids=str,
)
def test_documents_that_are_not_stored_as_they_were_signed_are_told(server, piped, capsys, tmp_path: Path):
    index, counts = piped
    with shinglefold.open(server.url, index) as site:
        summary = site.index([{name: one[name] for name in ("title", "body")} for one in pages(30)])
        found = {name: summary.counts.get(name, 0) for name in ("fingerprints_lost", "texts_changed")}
        assert (summary.indexed, found) == (30, {"fingerprints_lost": 0, "texts_changed": 0, **counts})
        assert any("ingest pipeline" in note for note in summary.notes) == bool(counts)
        assert site.backfill().counts.updated == sum(counts.values())
    place = tmp_path / "pages.jsonl"
    place.write_text("".join(json.dumps(one) + "\n" for one in pages(30)))
    code = main(["index", str(place), "--index", index, "--engine", server.url, "--workers", "1"])
    out = capsys.readouterr().out
    assert code == (3 if counts else 0)
    assert (f"shinglefold backfill {index} --engine {server.url}" in out) == bool(counts)
    letters = tmp_path / "letters.jsonl"
    origin = {"reason": "mended", "stage": "index", "line": 1, "source": "pages.jsonl"}
    letters.write_text("".join(json.dumps({**origin, "document": one}) + "\n" for one in pages(30)))
    arguments = ["--replay", "--index", index, "--engine", server.url, "--workers", "1"]
    assert main(["index", str(letters), *arguments]) == (3 if counts else 0)
