"""demo: quick, readable at 100 columns, and what it shows is what folding does."""

from shinglefold.examples import queries


def test_every_search_is_shown_before_and_after(run):
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    # The line of seconds is as long as a run has stages.
    assert max(len(line) for line in ran.out.splitlines() if "documents/s" not in line) <= 100
    for query in queries():
        assert query.text in ran.out
    assert ran.out.count("before folding") == ran.out.count("after folding") == len(queries())
    assert "shinglefold index FILE.jsonl" in ran.out.split("What to try next:")[1]


def test_on_a_narrow_terminal_the_pages_stand_one_under_the_other(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("demo", "--size", 2).out.splitlines()
    assert not any("before folding" in line and "after folding" in line for line in lines)


def test_json_holds_both_pages_of_every_search(run):
    told = run("demo", "--json", "--size", 4).json()
    assert told["summary"]["failed"] == 0
    assert len(told["searches"]) == len(queries())
    for search in told["searches"]:
        assert 0 < len(search["after"]["hits"]["hits"]) <= 4
        assert search["after"]["dedup"]["folded"] > 0
        assert "dedup" not in search["before"]
