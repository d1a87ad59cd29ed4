"""setup, backfill, retry and doctor, as they are typed."""

import json
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest
from support.commands import json_lines
from support.maintenance import pages

from shinglefold.cli.shared.command import Invocation
from shinglefold.cli.shared.maintenance import report_stop
from shinglefold.engines import open_engine


@pytest.fixture
def site(run) -> str:
    """An index of 20 pages, five of which are stale and one unsigned."""
    lines = json_lines(*pages(20))
    assert run("index", "-", stdin=lines).code == 0
    return "pages"


def spoil(index: str) -> None:
    from contextlib import closing

    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.canon import Canonicalizer
    from shinglefold.engines.embedded import EmbeddedEngine
    from shinglefold.registry import make_scheme

    canonicalizer: Canonicalizer = search_canonicalizer(make_scheme())
    with closing(EmbeddedEngine(".shinglefold", canonicalizer)) as engine:
        other = [
            {"_id": f"page-{n}", "doc": {"body": page["body"]}} for n, page in enumerate(pages(5, seed=2))
        ]
        other.append({"_id": "page-7", "doc": {"_dedup": None}})
        assert not engine.bulk({"_op_type": "update", "_index": index, **one} for one in other).failures


@pytest.mark.long(every=4)
@pytest.mark.parametrize("command", ["backfill", "regroup"])
@pytest.mark.parametrize("held", ['{"title": "a page"}', "[1, 2]", "words", ""])
def test_a_file_that_is_no_checkpoint_is_refused_and_stays(run, site, tmp_path, command, held):
    assert run("setup", site, "--groups").code == 0
    other = tmp_path / "other.json"
    other.write_text(held)
    refused = run(command, site, "--checkpoint", other).check(1)
    assert refused.err == f"error: {other} holds something else than a checkpoint: name another file\n"
    assert other.read_text() == held
    folder = run(command, site, "--checkpoint", ".").check(1)
    assert folder.err == "error: cannot read the checkpoint .: Is a directory; name another file\n"


def test_doctor_finds_what_backfill_mends(run, site):
    well = run("doctor", site)
    assert (well.code, well.out.splitlines()[-1]) == (0, "all is well")
    spoil(site)
    ill = run("doctor", site).check(3)
    assert "5 have one of an earlier text: somebody updated the text alone: page-0" in ill.out
    assert "1 have no fingerprint: page-7" in ill.out
    assert ill.out.splitlines()[-1] == "to mend it: shinglefold backfill pages"
    mended = run("backfill", site).check(0)
    assert "6 updated, 14 right already, 0 dropped, 0 failed, 0 gone, of 20 read in pages" in mended.out
    assert run("doctor", site, "--json").json()["healthy"] is True


def test_doctor_counts_documents_without_a_group_and_says_how_they_get_one(run, site):
    assert run("setup", site, "--groups").code == 0
    newer = json.dumps({**pages(21)[20], "id": "page-20"})
    assert run("add", "-", "--index", site, "--policy", "tag", stdin=newer).code == 0
    ill = run("doctor", site).check(3)
    assert "  20 have no number of a group, though the index numbers its groups" in ill.out.splitlines()
    assert ill.out.splitlines()[-1] == "to mend it: shinglefold regroup pages"
    told = run("doctor", site, "--json").json()
    assert (told["ungrouped"], told["healthy"]) == (20, False)


def test_setup_shows_changes_makes_them_and_then_has_none(run, site):
    planned = run("setup", site, "--preset", "classic", "--dry-run").check(0)
    assert "~ _meta.shinglefold.sketch.values: 336 → 84" in planned.out
    assert planned.out.splitlines()[-1] == "nothing was changed: this was a dry run"
    done = run("setup", site, "--preset", "classic", "--json").json()
    assert (done["done"], done["backfills"]) == (True, {"pages": 20})
    again = run("setup", site, "--preset", "classic")
    assert again.out.splitlines() == [
        "pages: 20 documents have no fingerprint of this scheme; then: shinglefold backfill pages",
        "nothing to change",
    ]
    assert run("backfill", site, "--preset", "classic").code == 0
    assert run("doctor", site, "--preset", "classic").code == 0


def test_a_backfill_of_another_scheme_says_what_to_do_first(run, site):
    run("backfill", site, "--preset", "classic").check(1, "shinglefold setup pages")


def test_retry_leaves_only_what_failed_again(run):
    lines = [json.dumps(page) for page in pages(4)] + [json.dumps({"id": "bad", "body": 5}), "{broken"]
    run("index", "-", "--dead-letters", "failed.jsonl", stdin="\n".join(lines) + "\n")
    letters = Path("failed.jsonl").read_text().replace('"body": 5', '"body": "теперь это текст"')
    Path("failed.jsonl").write_text(letters)
    again = run("index", "--replay", "failed.jsonl").check(3)
    assert "1 indexed into pages, 0 dropped, 1 failed, of 2 read" in again.out
    (left,) = map(json.loads, Path("failed.jsonl").read_text().splitlines())
    assert left["raw"] == "{broken"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("setup",), 2, "name an index"),
        (("setup", "--pattern", "news-*"), 2, "no templates"),
        (("backfill", "pages", "--slice", "3/2"), 2, "such as 2/4"),
        (("backfill", "nowhere"), 1, "no index 'nowhere' in .shinglefold; there are: "),
        (("doctor", "nowhere"), 1, "no index 'nowhere' in .shinglefold; there are: "),
        (("index", "--replay", "nowhere.jsonl"), 1, "check the path"),
    ],
)
def test_what_can_not_be_done_is_one_line(run, arguments, code, said):
    ran = run(*arguments).check(code, said)
    assert len(ran.err.splitlines()) == 1


def test_an_index_to_come_is_called_new_once(run):
    assert run("setup", "news").out.splitlines()[0] == "new index news:"


def test_what_goes_on_with_a_run_that_stopped_is_told_once_and_with_all_its_options(capsys):
    asked = Invocation(arguments=("backfill", "pages", "--engine", "http://u:p@one"), engine="http://u:p@one")
    assert report_stop("damaged; delete it: `shinglefold delete pages`", asked, anew=False) == 1
    assert capsys.readouterr().err.splitlines() == [
        "stopped: damaged; delete it: shinglefold delete pages --engine http://one",
        "to continue: shinglefold backfill pages --engine http://one",
    ]
    report_stop("the index 'pages-1' was deleted meanwhile", asked, anew=True)
    told = capsys.readouterr().err
    assert "to start again with the index that now has the name: shinglefold backfill" in told
    assert "to continue" not in told


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    "options",
    [
        ("--field", "headline", "--field", "content"),
        ("--dedup-field", "copies"),
        ("--dedup-field", "meta.copies", "--field", "content"),
        ("--preset", "compact"),
        ("--no-keywords",),
        ("--passages", "--groups"),
        ("--fold", "--gate", "refuse"),
        ("--no-fold", "--gate", "none"),
        ("--pipeline", "own.json"),
        ("--pipeline", "own.json", "--no-keywords"),
        ("--pipeline", "own.json", "--passages"),
        ("--pipeline", "own.json", "--dedup-field", "copies"),
    ],
)
def test_a_setup_without_options_keeps_what_an_earlier_one_chose(run, options):
    steps = [{"html_strip": {"field": "body"}}, {"supershingle": {"fields": ["body"], "description": "ours"}}]
    Path("own.json").write_text(json.dumps({"description": "ours", "version": 3, "processors": steps}))
    if "copies" in options and "own.json" in options:
        steps[1]["supershingle"]["target_field"] = "copies"
        Path("own.json").write_text(json.dumps({"processors": steps}))
    assert run("setup", "pages", *options).code == 0
    assert run("setup", "pages", *options).out == "nothing to change\n"
    assert run("setup", "pages").out == "nothing to change\n"


def test_what_folded_clients_do_is_noted_for_each_index_and_told(run):
    source = json_lines(*pages(3))
    for name in ("a", "b"):
        assert run("index", "-", "--index", name, stdin=source).code == 0
    assert run("setup", "a", "--fold", "--gate", "refuse").code == 0
    assert run("setup", "a", "b", "--passages").code == 0
    shown = run("stats", "a").out
    assert "searches      folded by default\ngate          refuse\n" in shown
    assert not {"searches", "gate"} & {line.split()[0] for line in run("stats", "b").out.splitlines()}
    again = run("index", "-", "--index", "a", "--recreate", stdin=source)
    assert "shinglefold setup a --fold --gate refuse" in again.err
    assert run("setup", "a", "--no-fold", "--gate", "none").code == 0
    assert "searches" not in run("stats", "a").out
    assert run("setup", "a", "--gate", "tag").code == 2
    for more in (("--no-fold",), ("--priority", 5), ("--name", "x"), ("--shadow-templates",)):
        assert "--remove takes" in run("setup", "a", "--remove", *more).err
    removed = run("setup", "a", "b", "--remove", "--json").out.splitlines()
    assert [json.loads(one)["done"] for one in removed] == [True, True]


def test_what_shinglefold_stored_is_taken_away_and_documents_stay(run, site):
    kept = Path(".shinglefold/.backfill-pages-2-1-of-1.json")
    ours = Path(".shinglefold/.backfill-pages-1-of-1.json")
    beside = [Path(f".shinglefold/.regroup-pages.json{suffix}") for suffix in ("", ".plan", ".texts")]
    for file in (kept, ours, *beside):
        file.write_text("{}")
    planned = run("setup", site, "--remove", "--dry-run").check(0)
    assert "- documents of pages: [_dedup] of 20" in planned.out
    assert f"- file {ours}" in planned.out
    assert str(kept) not in planned.out
    assert "[_dedup] of pages stays in the mappings" in planned.out
    assert run("stats", site, "--json").json()["indices"][0]["fingerprints"] == 20
    begun = monotonic()
    done = run("setup", site, "--remove", "--requests-per-second", 40, "--json").json()
    assert monotonic() - begun >= 0.5
    assert (done["removed"], done["left"], done["done"]) == (20, 0, True)
    assert (kept.exists(), ours.exists(), [*filter(Path.exists, beside)]) == (True, False, [])
    (found,) = run("stats", site, "--json").json()["indices"]
    assert (found["documents"], found["recipe"]) == (20, None)
    run("setup", site, "--remove").check(2, "nothing to remove")
    assert run("setup", site, "--remove", "--preset", "compact").code == 2
    run("setup", site, "--requests-per-second", 40).check(
        2, "shinglefold backfill pages --requests-per-second 40"
    )
    assert run("setup", site).code == 0
    assert run("backfill", site).code == 0
    assert run("doctor", site).code == 0


def test_setup_names_the_fields_it_makes_fingerprints_of_whole(run):
    names = [f"a_field_with_a_long_name_{number}" for number in range(12)]
    fields = [part for name in names for part in ("--field", name)]
    shown = run("setup", "news", *fields, "--dry-run")
    assert f"fingerprints are made of: {', '.join(names)}\n" in shown.out
    assert run("setup", "news", *fields, "--dry-run", "--json").json()["fields"] == names


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("named", "told"), [("boddy", "'boddy' (nearest: 'body')"), ("xyz", "the mappings have no field xyz")]
)
def test_doctor_takes_a_mistyped_field_for_one(run, examples_file, named, told):
    assert run("index", examples_file, "--index", "typed").code == 0
    run("setup", "typed", "--field", "title", "--field", named)
    assert told in run("doctor", "typed").out


def test_an_id_that_looks_like_a_command_is_shown_as_it_is(run, tmp_path):
    """A command in a line may be typed: it is never made of an id."""
    id_ = "`shinglefold delete pages`"
    lines = [{"_id": id_, "body": pages(1)[0]["body"]}, {"_id": "other", "body": "short"}]
    source = json_lines(*lines)
    assert run("index", "-", "--engine", "kept", stdin=source).code == 0
    with closing(open_engine("kept")) as engine:
        without_text = {"_op_type": "update", "_index": "pages", "_id": id_, "doc": {"body": None}}
        assert not engine.bulk([without_text]).failures
    for command in ("doctor", "backfill"):
        ran = run(command, "pages", "--engine", "kept").check(3)
        assert id_ in ran.out
        assert "shinglefold delete pages --engine" not in ran.out


def test_a_source_that_looks_like_a_command_is_shown_as_it_is(run):
    name = "`shinglefold delete pages`.jsonl"
    Path(name).write_text('{"_id": "1", "body": 5}\n')
    ran = run("index", name, "--engine", "kept")
    assert f"first: {name}:1" in ran.out
    assert "shinglefold delete pages --engine" not in ran.out
