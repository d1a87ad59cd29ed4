"""Scans and their checkpoints."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, store

from shinglefold.errors import ConfigError, EngineUnavailable, InputError, PitExpired
from shinglefold.ingest.index_mapping import ensure_index
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.checkpoint import Checkpoint
from shinglefold.maintenance.deletion import carry_out_removal, plan_removal
from shinglefold.maintenance.scan import Scan, Slice, Throttle, restart_on_expiry
from shinglefold.runtime.backoff import Backoff


def test_every_document_is_met_once_and_a_place_leads_to_the_rest(engine, unsigned):
    scan = Scan(engine, unsigned)
    start = scan.start()
    met = list(scan.pages(start))
    ids = [hit["_id"] for page in met for hit in page.hits]
    assert sorted(ids) == sorted(page["id"] for page in pages(250))
    assert scan.total(start) == 250
    for number, page in enumerate(met):
        rest = [hit["_id"] for later in scan.pages(page.place) for hit in later.hits]
        assert rest == [hit["_id"] for later in met[number + 1 :] for hit in later.hits]
    scan.close(start)
    with pytest.raises(PitExpired):
        list(scan.pages(start))


@pytest.mark.long
def test_pages_of_long_documents_are_short(engine, unsigned):
    store(engine, unsigned, [{"id": f"long-{n}", "title": "", "body": "слово " * 20_000} for n in range(150)])
    scan = Scan(engine, unsigned)
    sizes = [len(page.hits) for page in scan.pages(scan.start())]
    assert sum(sizes) == 400
    assert sizes[-2] < 100


def test_what_is_written_later_is_not_met(engine, unsigned):
    scan = Scan(engine, unsigned)
    start = scan.start()
    store(engine, unsigned, [{"id": "late", "title": "x", "body": "y"}])
    assert "late" not in {hit["_id"] for page in scan.pages(start) for hit in page.hits}


def test_an_index_that_keeps_no_sources_can_not_be_scanned(engine, unsigned):
    class Sourceless:
        def __getattr__(self, name):
            return getattr(engine, name)

        def search(self, index, body):
            answer = engine.search(index, body)
            for hit in answer["hits"]["hits"]:
                hit.pop("_source", None)
            return answer

    scan = Scan(Sourceless(), unsigned)
    with pytest.raises(InputError, match="_source is off"):
        list(scan.pages(scan.start()))


AT_ONCE = Backoff(retries=8, first=0.0, most=0.0)


@dataclass
class Losing:
    """An engine with points in time that lack a shard for good; or everything does, for so many requests."""

    engine: object
    lost: set[str] = field(default_factory=set)
    away: int = 0
    opened: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def open_pit(self, *given):
        self.opened.append(self.engine.open_pit(*given))
        return self.opened[-1]

    def search(self, index, body):
        if self.away or body["pit"]["id"] in self.lost:
            self.away = max(0, self.away - 1)
            reason = {"type": "no_shard_available_action_exception", "reason": "why"}
            return {"_shards": {"failed": 1, "failures": [{"shard": 0, "reason": reason}]}}
        return self.engine.search(index, body)


def test_a_point_in_time_that_lost_a_shard_for_good_is_given_up_where_the_index_answers(engine, unsigned):
    losing = Losing(engine)

    def read():
        scan = Scan(losing, unsigned, backoff=AT_ONCE)
        ids = []
        for page in scan.pages(scan.start()):
            ids += [hit["_id"] for hit in page.hits]
            losing.lost |= set(losing.opened[:1])
        return ids

    assert sorted(restart_on_expiry(read)) == sorted(page["id"] for page in pages(250))
    # The lost one, the one of the probe, and the one that was read.
    assert len(losing.opened) == 3
    with pytest.raises(PitExpired):
        # Those of probes are closed.
        engine.search(None, {"pit": {"id": losing.opened[1]}})


@pytest.mark.parametrize("away", [4, 6])
def test_a_point_in_time_is_kept_where_the_whole_index_is_away_for_a_while(engine, unsigned, away):
    losing = Losing(engine)
    scan = Scan(losing, unsigned, backoff=AT_ONCE)
    place = scan.start()
    losing.away = away
    assert sum(len(page.hits) for page in scan.pages(place)) == 250
    assert [one for one in losing.opened if one == place.pit] == [place.pit]


def test_an_index_that_stays_away_is_reported_as_unavailable(engine, unsigned):
    losing = Losing(engine)
    scan = Scan(losing, unsigned, backoff=AT_ONCE)
    place = scan.start()
    losing.away = 1_000
    with pytest.raises(EngineUnavailable, match="not all shards answered"):
        list(scan.pages(place))


def test_a_part_is_written_as_number_and_of():
    assert Slice.parse("2/4") == Slice(2, 4)
    assert str(Slice(2, 4)) == "2/4"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "1/2000", "x/y"])
def test_what_is_no_part_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match="such as 2/4"):
        Slice.parse(text)


def test_the_whole_in_one_needs_no_slice():
    assert Slice().slices(1) == [{}]


@pytest.mark.parametrize(("of", "cuts"), [(1, 3), (4, 1), (4, 3), (2, 5)])
def test_the_slices_of_all_parts_are_all_slices_once(of, cuts):
    slices = [one["slice"] for number in range(1, of + 1) for one in Slice(number, of).slices(cuts)]
    assert [one["id"] for one in slices] == list(range(of * cuts))
    assert {one["max"] for one in slices} == {of * cuts}


def test_each_slice_stays_in_one_shard():
    # A server puts slice s of at least as many slices as shards into shard s modulo the number of shards.
    for number in (1, 2, 3, 4):
        assert [one["slice"]["id"] % 3 for one in Slice(number, 4).slices(3)] == [0, 1, 2]


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_documents_take_the_time_they_are_given():
    clock = Clock()
    pace = Throttle(50, clock, clock.sleep)
    for _ in range(10):
        clock.now += 0.5
        pace.wait(100)
    assert clock.now == pytest.approx(100 + 10 * 100 / 50)


def test_work_slower_than_the_pace_is_not_slowed_further_nor_made_up_for():
    clock = Clock()
    pace = Throttle(100, clock, clock.sleep)
    clock.now += 60
    pace.wait(100)
    assert clock.now == 160
    pace.wait(100)
    assert clock.now == pytest.approx(161)


def test_no_rate_means_no_waiting():
    Throttle(0, sleep=lambda _: pytest.fail("waited")).wait(10**9)


#: What reads and writes an index document by document, at a rate.
WORKS = {
    "backfill": lambda engine, pipeline, rate: backfill(
        engine, "pages", pipeline, BackfillOptions(workers=1, requests_per_second=rate)
    ),
    "doctor": lambda engine, pipeline, rate: diagnose(
        engine, "pages", pipeline, DoctorOptions(workers=1, requests_per_second=rate)
    ),
    "removal": lambda engine, _, rate: carry_out_removal(
        engine, plan_removal(engine, "pages"), requests_per_second=rate
    ),
}


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("rate", "kept"), [(0.0, "10m"), (500.0, "10m"), (1.0, "34m"), (0.001, "1440m")])
@pytest.mark.parametrize("work", WORKS)
def test_what_reads_documents_keeps_to_its_rate_and_keeps_its_point_in_time(
    engine, pipeline, monkeypatch, work, rate, kept
):
    ensure_index(engine, "pages", pipeline.recipe(), properties=FIELDS)
    store(engine, "pages", pages(3))
    backfill(engine, "pages", pipeline, BackfillOptions(workers=1))
    opened, waited, open_pit = [], [], engine.open_pit

    def kept_open(index, keep_alive="1m", parameters=None):
        opened.append(keep_alive)
        return open_pit(index, keep_alive, parameters)

    monkeypatch.setattr(engine, "open_pit", kept_open)
    monkeypatch.setattr(Throttle, "wait", lambda pace, count: waited.append((pace.rate, count)))
    WORKS[work](engine, pipeline, rate)
    assert (opened[0], waited[0]) == (kept, (rate, 3))


def test_a_negative_rate_is_refused():
    with pytest.raises(ConfigError, match="0 for no limit"):
        Throttle(-1)


JOB = {"index": "pages", "scheme": "sf1-a", "only_missing": False}
STATE = {"place": 5, "counts": {"read": 5}}


def checkpoint(path: Path | None, **job: object) -> Checkpoint:
    return Checkpoint(path, "backfill", JOB | job)


def test_what_was_saved_is_loaded(tmp_path: Path):
    file = checkpoint(tmp_path / "folder" / "checkpoint.json")
    file.save(STATE)
    assert file.load(dict) == STATE
    file.remove()
    assert file.load(dict) is None
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_crash_while_saving_leaves_the_one_before(tmp_path: Path):
    file = checkpoint(tmp_path / "checkpoint.json")
    file.save(STATE)
    # What a process killed in the middle of writing leaves behind.
    (tmp_path / "checkpoint.json.part").write_text('{"format": 3, "jo')
    assert file.load(dict) == STATE
    file.save(STATE | {"place": 7})
    assert file.load(dict) == STATE | {"place": 7}


def test_saving_touches_no_other_file(tmp_path: Path):
    beside = tmp_path / "checkpoint.json.part"
    beside.write_text("mine")
    file = checkpoint(tmp_path / "checkpoint.json")
    file.save(STATE)
    file.save(STATE | {"place": 7})
    assert beside.read_text() == "mine"
    assert {one.name for one in tmp_path.iterdir()} == {"checkpoint.json", "checkpoint.json.part"}


def test_a_failed_write_of_a_checkpoint_leaves_no_other_file(tmp_path: Path):
    (tmp_path / "checkpoint.json").mkdir()
    with pytest.raises(InputError, match="give another path"):
        checkpoint(tmp_path / "checkpoint.json").save(STATE)
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint.json"]


@pytest.mark.parametrize(("name", "value"), [("index", "news"), ("scheme", "sf1-b"), ("only_missing", True)])
def test_a_checkpoint_of_another_job_is_refused_and_says_what_differs(tmp_path: Path, name, value):
    checkpoint(tmp_path / "checkpoint.json").save(STATE)
    with pytest.raises(ConfigError, match=f"of another backfill .{name} .*delete the file"):
        checkpoint(tmp_path / "checkpoint.json", **{name: value}).load(dict)


@pytest.mark.parametrize(
    "text", ["", "5", "[]", "{}", '{"format": 3, "job": 5}', "{x", "\udcff", '{"title": "a", "body": "b"}']
)
def test_a_file_of_something_else_is_named_and_stays(tmp_path: Path, text):
    path = tmp_path / "checkpoint.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(InputError) as refused:
        checkpoint(path).load(dict)
    assert str(refused.value) == f"{path} holds something else than a checkpoint: name another file"
    assert path.read_text(errors="surrogateescape") == text


def test_a_folder_is_no_checkpoint(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read the checkpoint .*: Is a directory; name another file"):
        checkpoint(tmp_path).load(dict)


def test_a_checkpoint_of_another_version_or_a_damaged_one_says_to_delete_it(tmp_path: Path):
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps({"format": 2, "job": JOB, "state": STATE}))
    with pytest.raises(InputError, match="has format 2, and this version reads 3: delete it to start from"):
        checkpoint(path).load(dict)
    checkpoint(path).save(STATE)
    with pytest.raises(InputError, match="is damaged: delete it to start from the beginning"):
        checkpoint(path).load(int)


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="give another path"):
        checkpoint(tmp_path / "file" / "checkpoint.json").save(STATE)


def test_without_a_path_nothing_is_kept():
    checkpoint(None).save(STATE)
    assert checkpoint(None).load(dict) is None
