"""An index of an earlier version, whose recipe is a scheme of that time alone, is used as any other.

``made_before.json`` has the mappings and the documents as version 12f170b stored them: 168 values of 4 bits,
each shingle counted once, and no word of pipeline, field or texts that decide.
"""

import json
from pathlib import Path

import pytest

from shinglefold.cli.stores import search_canonicalizer
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, Refused
from shinglefold.groups import Gate
from shinglefold.recipe import Recipe

_FILE = Path(__file__).with_name("made_before.json")
#: Near-copies of each other, and equal texts; the only other document is too short for a signature.
_COPIES = ({"ru-1", "ru-2", "html"}, {"uk-1", "uk-2"}, {"zh-1", "zh-2"}, {"en-1", "en-2"})


def _made() -> dict:
    return json.loads(_FILE.read_text("utf-8"))


@pytest.fixture
def before() -> str:
    """The index, as it was, in the folder where commands look for one."""
    made = _made()
    recipe = Recipe.of(made["mappings"], "news")
    with open_engine(".shinglefold", search_canonicalizer(recipe.scheme)) as engine:
        engine.create_index("news", made["mappings"], {})
        assert not engine.bulk([{"_index": "news", **one} for one in made["documents"]]).failures
    return "news"


def _bodies() -> dict[str, str]:
    return {one["_id"]: one["_source"]["body"] for one in _made()["documents"]}


def test_its_recipe_is_of_that_time():
    noted = _made()["mappings"]["_meta"]["shinglefold"]
    assert not {"field", "fields", "pipeline", "product", "groups"} & noted.keys()
    assert "counted" not in noted["sketch"]
    assert "verify" not in noted["decision"]
    scheme = Recipe.of(_made()["mappings"], "news").scheme
    assert (scheme.id, scheme.sketch.values, scheme.sketch.counted) == (noted["id"], 168, False)


def test_searches_fold_what_they_folded(run, before):
    for word, copies in zip(("мост", "міст", "大桥", "bridge"), _COPIES, strict=True):
        page = run("search", word, "--index", before, "--show-duplicates", "--json").json()
        groups = [
            {one["_id"] for one in hit["inner_hits"]["duplicates"]["hits"]["hits"]}
            for hit in page["hits"]["hits"]
        ]
        assert copies in groups, word
        assert page["dedup"]["other_schemes"] == {}


def test_copies_are_found_and_explained(run, before):
    for copies in _COPIES:
        first = sorted(copies)[0]
        found = run("similar", first, "--index", before, "--json").json()
        assert {match["_id"] for match in found["matches"]} == copies - {first}
        told = run("explain", *sorted(copies)[:2], "--index", before, "--json").json()
        assert told["folds"]


def test_its_fingerprints_are_those_that_are_made_now(run, before):
    assert run("doctor", before, "--workers", 1).out.splitlines()[-1] == "all is well"
    done = run("backfill", before, "--workers", 1, "--json").json()
    assert (done["unchanged"], done["updated"]) == (10, 0)
    assert run("stats", before, "--json").code == 0


def test_a_gate_knows_the_copies_of_its_documents(run, before):
    new = [{"id": f"new-{name}", "body": body} for name, body in _bodies().items() if name.endswith("-1")]
    lines = "".join(f"{json.dumps(one)}\n" for one in new)
    told = run("add", before, "-", "--json", stdin=lines).json()
    assert (told["read"], told["refused"]) == (4, 4)
    copy = json.dumps({"id": "same", "body": _bodies()["en-1"], "host": "b.example"})
    told = run("add", before, "-", "--scope", "host.keyword", "--json", stdin=f"{copy}\n").json()
    assert told["documents"][0]["like"]["_id"] == "en-2"


def test_a_gate_that_is_given_no_pipeline_says_what_notes_one(run, before):
    copy = {"id": "same", "body": _bodies()["en-1"]}
    with open_engine(".shinglefold") as engine:
        with Gate(engine, before) as gate, pytest.raises(ConfigError, match="`shinglefold setup news`"):
            gate.add(copy)
        assert run("setup", before).code == 0
        with Gate(engine, before) as gate, pytest.raises(Refused):
            gate.add(copy)


def test_more_is_indexed_into_it_and_groups_are_made_of_all(run, before):
    more = json.dumps({"id": "en-3", "title": "", "body": _bodies()["en-1"]})
    assert run("index", "-", "--index", before, "--workers", 1, stdin=f"{more}\n").code == 0
    assert run("setup", before, "--groups").code == 0
    assert run("regroup", before, "--json").json()["settled"]
    told = run("report", before, "--json").json()
    assert (told["groups"], sorted(one["documents"] for one in told["largest"])) == (5, [2, 2, 3, 3])
    assert run("doctor", before, "--workers", 1).out.splitlines()[-1] == "all is well"


def test_its_documents_are_paired_anew_from_their_texts(run):
    lines = "".join(f"{json.dumps(one['_source'])}\n" for one in _made()["documents"])
    Path("news.jsonl").write_text(lines, "utf-8")
    refused = run("groups", "--pairs", "news.jsonl", "--workers", 1)
    assert (refused.code, "--texts" in refused.err) == (1, True)
    told = run("groups", "--pairs", "news.jsonl", "--texts", "--workers", 1).out.splitlines()
    pairs = {tuple(sorted(line.split("\t")[:2])) for line in told}
    assert pairs == {(a, b) for copies in _COPIES for a in copies for b in copies if a < b}
