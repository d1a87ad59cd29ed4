"""Groups made anew on real servers: guarded writes over several shards and indices, writers meanwhile."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.killed_regroup import checkpoint, killed, moments
from support.numbered import USUAL, connected_groups, groups_of, led_rightly, mappings, store, stored
from support.random_pages import COUNT

from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.report import make_report
from shinglefold.model.recipe import Recipe

SETTINGS = {"number_of_shards": 3, "number_of_replicas": 0}


@pytest.fixture
def index(engine, new_index) -> str:
    name = new_index(mappings(), SETTINGS)
    store(engine, name, range(COUNT))
    return name


@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_groups_are_right_and_found_again(engine, index, linkage):
    summary = regroup(engine, index, RegroupOptions(linkage))
    found = stored(engine, index)
    assert (summary.settled, summary.counts.written, summary.counts.conflicts) == (True, len(USUAL), 0)
    if linkage == "leader":
        assert led_rightly(found)
    else:
        whole = {frozenset(members) for members in groups_of(found).values()}
        assert whole == connected_groups(USUAL)
    again = regroup(engine, index, RegroupOptions(linkage))
    assert (again.counts.planned, again.passes) == (0, 1)


def test_a_write_that_lost_is_made_again_and_another_text_is_left_alone(engine, index):
    seen = []

    def write(what: str, _documents: int, _share: float) -> None:
        if what == "grouping" and not seen:
            seen.append(what)
            # The same texts in newer versions, one with another text, and one gone.
            store(engine, index, USUAL[10:30])
            text = stored(engine, index)[USUAL[40]]
            other = {"_index": index, "_id": f"p{USUAL[0]}", "_source": {"_dedup": text}}
            gone = {"_op_type": "delete", "_index": index, "_id": f"p{USUAL[1]}"}
            assert not engine.bulk([other, gone]).failures

    summary = regroup(engine, index, RegroupOptions("connected"), report=write)
    found = stored(engine, index)
    assert (summary.settled, summary.counts.changed, summary.counts.gone) == (True, 1, 1)
    assert summary.counts.conflicts == 21
    assert found[USUAL[0]]["group"] == found[USUAL[40]]["group"]
    whole = {frozenset(one) - {USUAL[0]} for one in groups_of(found).values()} - {frozenset()}
    assert whole == connected_groups(USUAL[2:])


def test_one_grouping_spans_the_indices_behind_a_pattern(engine, new_index, index):
    other = new_index(mappings(), SETTINGS)
    store(engine, other, range(COUNT))
    regroup(engine, f"{index},{other}", RegroupOptions("connected"))
    assert groups_of(stored(engine, index)) == groups_of(stored(engine, other))


def test_a_run_that_was_cut_short_goes_on(engine, index, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("shinglefold.grouping.regroup.run._BATCH", 50)
    options = RegroupOptions(checkpoint=tmp_path / "kept.json")

    def interrupt(what: str, documents: int, _share: float) -> None:
        if what == "writing" and documents >= 150:
            raise KeyboardInterrupt

    first = regroup(engine, index, options, report=interrupt)
    assert (first.stopped, first.counts.written) == ("interrupted", 150)
    second = regroup(engine, index, options)
    assert (second.settled, second.resumed, second.counts.written) == (True, True, len(USUAL))
    assert led_rightly(stored(engine, index))


def test_a_report_counts_the_groups_of_all_shards(engine, index):
    regroup(engine, index)
    groups = groups_of(stored(engine, index))
    made = make_report(engine, index)
    assert (made.documents, made.without_group) == (COUNT, COUNT - len(USUAL))
    assert (made.groups, made.copies) == (len(groups), len(USUAL) - len(groups))
    assert [one.documents for one in made.largest] == sorted(map(len, groups.values()), reverse=True)[:10]
    assert {one.value for one in made.hosts} == {"a.org", "b.org"}
    assert sum(one.documents for one in made.months) == len(USUAL)


@pytest.mark.newest
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_a_run_killed_at_random_moments_ends_as_one_that_was_not(
    engine, new_index, server, index, tmp_path: Path, linkage, seed
):
    calm = new_index(mappings(), SETTINGS)
    store(engine, calm, range(COUNT))
    regroup(engine, calm, RegroupOptions(linkage))
    options = replace(checkpoint(tmp_path), linkage=linkage)
    for moment in moments(seed):
        assert killed(partial(open_engine, server.url), index, options, moment, seed)
    summary = regroup(engine, index, options)
    assert (summary.settled, summary.resumed) == (True, True)
    assert stored(engine, index) == stored(engine, calm)


def test_indices_that_note_different_rules_are_not_mixed_unasked(engine, new_index, index):
    other = new_index(mappings(), SETTINGS)
    store(engine, other, USUAL[:20])
    strict = RegroupOptions(min_resemblance=0.99)
    regroup(engine, index, strict)
    both = f"{index},{other}"
    with pytest.raises(ConfigError, match=r"different rules for groups.*--by-scheme"):
        regroup(engine, both)
    assert regroup(engine, both, strict).settled
    noted = [Recipe.of(engine.mappings(name), name).grouping for name in (index, other)]
    assert noted == [{"min_resemblance": 0.99}] * 2
    assert regroup(engine, both).counts.planned == 0
