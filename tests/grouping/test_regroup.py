"""Regroup a whole index."""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from support.hits import SCHEME, fingerprint_of
from support.numbered import USUAL, connected_groups, groups_of, led_rightly, mappings, store, stored
from support.random_pages import COUNT, SPECS, alike
from support.taps import Changed

from shinglefold.contracts.engine import BulkFailure, BulkResult
from shinglefold.errors import ConfigError, InputError
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.regroup.text_verdicts import VerdictLog
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.maintenance.scan import Throttle

CONNECTED = RegroupOptions("connected")


def books(counts) -> bool:
    done = counts.written + counts.already + counts.changed + counts.gone + counts.failed
    return counts.planned == done


def test_connected_groups_are_what_chains_of_pairs_lead_to(engine, index):
    summary = regroup(engine, index, CONNECTED)
    found = {frozenset(members) for members in groups_of(stored(engine, index)).values()}
    assert found == connected_groups(USUAL)
    assert (summary.settled, summary.counts.groups, summary.counts.read) == (True, len(found), COUNT)
    assert summary.counts.without_fingerprint == COUNT - len(USUAL)
    assert books(summary.counts)


def test_each_member_matches_its_leader_and_no_two_leaders_match(engine, index):
    assert regroup(engine, index).settled
    assert led_rightly(stored(engine, index))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_a_second_run_writes_nothing(engine, index, linkage):
    regroup(engine, index, RegroupOptions(linkage))
    before = stored(engine, index)
    again = regroup(engine, index, RegroupOptions(linkage))
    assert (again.counts.planned, again.counts.merged, again.counts.split) == (0, 0, 0)
    assert (again.passes, again.settled) == (1, True)
    assert stored(engine, index) == before


@pytest.mark.long(every=2)
@pytest.mark.parametrize("direction", ["", "-"])
def test_the_order_option_decides_which_documents_lead(engine, index, direction):
    summary = regroup(engine, index, RegroupOptions(order=f"{direction}published"))
    found = stored(engine, index)
    assert summary.settled
    assert led_rightly(found)
    by_date = sorted(USUAL, key=lambda number: SPECS[number].published or 0, reverse=bool(direction))
    assert found[by_date[0]]["leader"]


def test_numbers_beyond_those_of_floats_decide_which_documents_lead(engine, index):
    for number, huge in zip(USUAL, (10**400, -(10**400)), strict=False):
        source = {"host": huge, "_dedup": fingerprint_of(SPECS[number]).to_field()}
        assert not engine.bulk([{"_index": index, "_id": f"p{number}", "_source": source}]).failures
    assert regroup(engine, index, RegroupOptions(order="host")).settled


def test_groups_keep_the_number_of_most_of_their_documents(engine, index):
    regroup(engine, index, CONNECTED)
    before = groups_of(stored(engine, index))
    number, members = max(before.items(), key=lambda item: len(item[1]))
    store(engine, index, [members[0]], **{f"p{members[0]}": 7})
    summary = regroup(engine, index, CONNECTED)
    assert groups_of(stored(engine, index)).keys() == before.keys()
    assert (summary.counts.merged, summary.counts.merged_from) == (1, 2)
    assert (summary.counts.moved, summary.counts.numbered) == (1, 0)
    assert sorted(groups_of(stored(engine, index))[number]) == sorted(members)


def test_the_largest_part_of_a_split_group_keeps_the_number(engine):
    engine.create_index("apart", mappings(), {})
    groups = sorted(connected_groups(USUAL), key=lambda one: (len(one), min(one)))
    one, other = groups[-1], groups[-2]
    store(engine, "apart", one | other, **{f"p{number}": 99 for number in one | other})
    summary = regroup(engine, "apart", CONNECTED)
    found = groups_of(stored(engine, "apart"))
    assert frozenset(found[99]) == one
    assert (summary.counts.split, summary.counts.split_into, summary.counts.merged) == (1, 2, 0)


def test_a_dry_run_counts_the_same_and_writes_nothing(engine, index, tmp_path: Path):
    before = stored(engine, index)
    told = regroup(engine, index, RegroupOptions(dry_run=True, checkpoint=tmp_path / "kept.json"))
    assert stored(engine, index) == before
    assert not list(tmp_path.glob("kept*"))
    done = regroup(engine, index)
    assert told.counts.planned == done.counts.planned == done.counts.written == len(USUAL)


def test_copies_of_a_text_match_by_their_own_signatures_too(engine):
    """Two languages may shingle a text differently."""
    engine.create_index("pages", mappings(), {})
    groups = sorted(connected_groups(USUAL), key=lambda one: (len(one), min(one)))
    first, *_ = groups[-2]
    copy, near = next((a, b) for a, b in permutations(sorted(groups[-1]), 2) if alike(a, b))
    made = {number: fingerprint_of(SPECS[number]) for number in (first, copy, near)}
    made[copy] = replace(made[copy], digest=made[first].digest)
    for at, one in enumerate(made.values()):
        source = {"_dedup": one.to_field()}
        assert not engine.bulk([{"_index": "pages", "_id": f"{at}", "_source": source}]).failures
    assert regroup(engine, "pages", CONNECTED).counts.groups == 1


def test_scopes_keep_documents_apart(engine, index):
    regroup(engine, index, RegroupOptions("connected", scope=("host",)))
    for members in groups_of(stored(engine, index)).values():
        assert len(members) == 1 or len({SPECS[number].host for number in members} | {None}) == 2


def test_documents_without_text_and_placeholders_join_no_group(engine, index):
    empty = fingerprint_of(SPECS[0].__class__(signed=False, lang="und", shingles=0)).to_field()
    for id_ in ("p9001", "p9002"):
        engine.bulk([{"_index": index, "_id": id_, "_source": {"_dedup": empty}}])
    engine.bulk([{"_index": index, "_id": "p9003", "_source": {"_dedup": {"pending": 1}}}])
    summary = regroup(engine, index, CONNECTED)
    found = stored(engine, index)
    assert found[9001]["group"] != found[9002]["group"]
    assert found[9003] == {"pending": 1}
    assert summary.counts.without_fingerprint == COUNT - len(USUAL)


def test_new_and_changed_documents_are_grouped_by_the_next_pass(engine, index):
    late = USUAL[-40:]
    engine.delete_by_query(index, {"ids": {"values": [f"p{number}" for number in late]}})
    seen = []

    def write(what: str, _documents: int, _share: float) -> None:
        if what == "grouping" and not seen:
            seen.append(what)
            store(engine, index, late)
            text = fingerprint_of(SPECS[late[0]]).to_field()
            engine.bulk([{"_index": index, "_id": f"p{USUAL[0]}", "_source": {"_dedup": text}}])
            engine.bulk([{"_op_type": "delete", "_index": index, "_id": f"p{USUAL[1]}"}])

    summary = regroup(engine, index, CONNECTED, report=write)
    found = stored(engine, index)
    assert summary.settled
    assert (summary.counts.changed, summary.counts.gone) == (1, 1)
    assert books(summary.counts)
    assert found[USUAL[0]]["group"] == found[late[0]]["group"]
    there = set(USUAL[2:])
    whole = {frozenset(one) & there for one in groups_of(found).values()} - {frozenset()}
    assert whole == connected_groups(there)


def test_a_run_that_never_settles_is_reported(engine, index):
    turn = iter(range(100))

    def write(what: str, _documents: int, _share: float) -> None:
        if what == "writing":
            store(engine, index, [USUAL[next(turn)]])

    summary = regroup(engine, index, report=write)
    assert not summary.settled
    assert summary.passes == 5


def test_an_index_without_numbers_is_refused_with_the_way_to_them(engine):
    engine.create_index("plain", recipe_mappings(default_recipe(SCHEME)), {})
    with pytest.raises(ConfigError, match="shinglefold setup plain --groups"):
        regroup(engine, "plain")


@pytest.mark.long(every=4)
@pytest.mark.parametrize(("rate", "kept"), [(0.0, "10m"), (500.0, "10m"), (1.0, "34m"), (0.001, "1440m")])
def test_a_slow_run_keeps_its_point_in_time_alive(engine, index, monkeypatch, rate, kept):
    asked, opened = [], engine.open_pit

    def open_pit(name, keep_alive="1m", parameters=None):
        asked.append(keep_alive)
        return opened(name, keep_alive, parameters)

    monkeypatch.setattr(engine, "open_pit", open_pit)
    monkeypatch.setattr(Throttle, "wait", lambda *_: None)
    assert regroup(engine, index, RegroupOptions(requests_per_second=rate, dry_run=True)).counts.planned
    assert asked == [kept]


def test_a_fingerprint_in_parts_with_dots_in_their_names_gets_one_number(engine, index):
    regroup(engine, index, CONNECTED)
    spec = SPECS[USUAL[0]]
    parts = {f"_dedup.{name}": value for name, value in fingerprint_of(spec).to_field().items()}
    source = {**parts, "_dedup.group": 7, "_dedup.leader": True, "host": spec.host}
    assert not engine.bulk([{"_index": index, "_id": "p9001", "_source": source}]).failures
    summary = regroup(engine, index, CONNECTED)
    found = stored(engine, index)
    assert (summary.settled, found[9001]["group"]) == (True, found[USUAL[0]]["group"])
    assert "_dedup.group" not in engine.get(index, "p9001")["_source"]
    assert regroup(engine, index, CONNECTED).counts.planned == 0


def interrupt(what: str, _documents: int, _share: float) -> None:
    if what == "writing":
        raise KeyboardInterrupt


@pytest.mark.long(every=2)
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_an_interrupted_run_resumes_its_plan(engine, index, tmp_path: Path, monkeypatch, linkage):
    monkeypatch.setattr("shinglefold.grouping.regroup.run._ALONE", 100)
    options = RegroupOptions(linkage, checkpoint=tmp_path / "kept.json")
    first = regroup(engine, index, options, report=interrupt)
    assert (first.stopped, first.counts.written) == ("interrupted", 100)
    engine.bulk([{"_op_type": "delete", "_index": index, "_id": f"p{USUAL[0]}"}])
    second = regroup(engine, index, options)
    assert (second.resumed, second.settled, second.stopped) == (True, True, "")
    assert second.counts.planned >= second.counts.written >= len(USUAL) - 1
    assert books(second.counts)
    assert not list(tmp_path.glob("kept*"))


def test_a_run_interrupted_twice_writes_nothing_twice(engine, index, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("shinglefold.grouping.regroup.run._ALONE", 100)
    path = tmp_path / "kept.json"
    options = RegroupOptions(checkpoint=path)
    for done in (100, 200):
        assert regroup(engine, index, options, report=interrupt).counts.written == done
        assert json.loads(path.read_text())["state"]["done"] == done
    summary = regroup(engine, index, options)
    assert (summary.settled, summary.counts.already) == (True, 0)


@pytest.mark.parametrize("there", [True, False], ids=["an old checkpoint", "no checkpoint"])
def test_a_plan_that_no_checkpoint_names_is_left_alone(engine, index, tmp_path: Path, there):
    path = tmp_path / "kept.json"
    options = RegroupOptions(checkpoint=path)
    regroup(engine, index, options, report=interrupt)
    # As when the process dies between a new plan and the checkpoint that names it.
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "state": {**kept["state"], "done": 0}}))
    if not there:
        path.unlink()
    plan = path.with_name("kept.json.plan")
    plan.write_text(plan.read_text().replace('"passes": 1', '"passes": 2', 1))
    summary = regroup(engine, index, options)
    assert (summary.resumed, summary.settled, summary.counts.already) == (there, True, 0)


class Moved(Changed):
    """An engine whose alias moves, so that the documents of a plan are in a deleted index."""

    def bulk(self, actions):
        return BulkResult(0, tuple(BulkFailure(one, 404, "index_not_found_exception") for one in actions))


def test_a_plan_for_a_deleted_index_is_discarded(engine, index, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("shinglefold.grouping.regroup.run._ALONE", 100)
    options = RegroupOptions(checkpoint=tmp_path / "kept.json")
    assert not regroup(engine, index, options, report=interrupt).anew
    summary = regroup(Moved(engine), index, options)
    assert (summary.stopped, summary.anew) == ("the index 'pages' was deleted meanwhile", True)
    assert not list(tmp_path.glob("kept*"))
    assert not regroup(engine, index, options).resumed


def test_no_new_group_gets_the_number_of_an_unreadable_document(engine, index):
    regroup(engine, index, CONNECTED)
    before = stored(engine, index)[USUAL[0]]["group"]
    store(engine, index, range(COUNT))
    left = {"scheme": "sf1-other", "digest": "sf1-other.en.9.x", "group": before}
    assert not engine.bulk([{"_index": index, "_id": "p9001", "_source": {"_dedup": left}}]).failures
    assert regroup(engine, index, CONNECTED).settled
    after = stored(engine, index)
    assert before not in {after[number]["group"] for number in USUAL}


def test_a_document_that_gets_a_fingerprint_of_another_scheme_meanwhile_is_left_alone(engine, index):
    made = {**fingerprint_of(SPECS[USUAL[0]]).to_field(), "scheme": "sf1-other"}

    def write(what: str, _documents: int, _share: float) -> None:
        if what == "grouping":
            engine.bulk([{"_index": index, "_id": f"p{USUAL[0]}", "_source": {"_dedup": made}}])

    summary = regroup(engine, index, report=write)
    assert (summary.settled, summary.counts.changed) == (True, 1)
    assert stored(engine, index)[USUAL[0]] == made


def test_a_checkpoint_of_another_job_or_damaged_is_refused(engine, index, tmp_path: Path):
    path = tmp_path / "kept.json"
    regroup(engine, index, RegroupOptions(checkpoint=path), report=interrupt)
    with pytest.raises(ConfigError, match="linkage 'leader', not 'connected'"):
        regroup(engine, index, RegroupOptions("connected", checkpoint=path))
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "state": {**kept["state"], "done": "many"}}))
    with pytest.raises(InputError, match="is damaged: delete it to start from the beginning"):
        regroup(engine, index, RegroupOptions(checkpoint=path))


@pytest.mark.long(every=4)
@pytest.mark.parametrize("plan", [None, "", "[]\n", "how the site is to be built"])
def test_a_checkpoint_whose_plan_is_missing_or_damaged_says_to_begin_anew(
    engine, index, tmp_path: Path, plan
):
    path, beside = tmp_path / "kept.json", tmp_path / "kept.json.plan"
    regroup(engine, index, RegroupOptions(checkpoint=path), report=interrupt)
    beside.unlink()
    if plan is not None:
        beside.write_text(plan)
    with pytest.raises(InputError, match=r"kept.json.plan, the plan of .* is missing or damaged: delete the"):
        regroup(engine, index, RegroupOptions(checkpoint=path))


def test_a_foreign_file_named_like_the_plan_is_not_replaced(engine, index, tmp_path: Path):
    foreign = tmp_path / "kept.json.plan"
    foreign.write_text("how the site is to be built")
    options = RegroupOptions(checkpoint=tmp_path / "kept.json")
    with pytest.raises(InputError, match=r"kept.json.plan, where .* holds something else: give another"):
        regroup(engine, index, options)
    assert foreign.read_text() == "how the site is to be built"
    assert not any("group" in parts for parts in stored(engine, index).values())


@pytest.mark.parametrize("held", [b"texts that somebody collected", b"x"])
def test_a_foreign_file_named_like_the_verdicts_is_not_replaced(tmp_path: Path, held: bytes):
    foreign = tmp_path / "kept.json.texts"
    foreign.write_bytes(held)
    with pytest.raises(InputError, match=r"kept.json.texts, where .* holds something else: give another"):
        VerdictLog(foreign, {})
    assert foreign.read_bytes() == held


def test_other_fields_of_a_document_stay_unchanged(engine, index):
    def sources() -> dict[str, dict[str, object]]:
        hits = engine.search(index, {"size": COUNT})["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    before = sources()
    regroup(engine, index)
    after = sources()
    assert before.keys() == after.keys()
    for id_, source in after.items():
        kept = {name: value for name, value in source["_dedup"].items() if name not in ("group", "leader")}
        assert {**source, "_dedup": kept} == before[id_]
