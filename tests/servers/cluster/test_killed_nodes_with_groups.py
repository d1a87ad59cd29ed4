"""A node is killed and stays away while groups are numbered, made anew and counted: the numbers agree."""

import uuid
from dataclasses import replace

import pytest
from support.maintenance import FIELDS

from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.report import make_report
from shinglefold.ingest import index_documents
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.maintenance import DoctorOptions, diagnose
from shinglefold.runtime.backoff import Backoff

PAGES = 600
#: As long as a node may take to come back on a busy machine.
LONG = Backoff(retries=40, first=0.5, most=5.0)


@pytest.fixture
def recipe(pipeline):
    return replace(pipeline.recipe(), groups=True)


@pytest.fixture
def grouped(admin, whole, recipe):
    """An empty index with numbers of groups, each shard on two nodes."""
    name = f"shinglefold-grouped-{uuid.uuid4().hex[:8]}"
    made = recipe_mappings(recipe)
    made["properties"] |= {**FIELDS, "id": {"type": "keyword"}}
    admin.create_index(name, made, {"number_of_shards": 3, "number_of_replicas": 1})
    whole.wait_until_whole()
    yield name
    admin.delete_index(name)


@pytest.fixture
def twice(documents):
    return [*documents[:PAGES], *({**one, "id": f"{one['id']}-again"} for one in documents[:PAGES])]


@pytest.fixture
def led(admin, twice):
    """Check that every page and its copy are a group that one of them leads."""

    def check(index):
        admin.refresh(index)
        hits = admin.search(index, {"size": 10_000})["hits"]["hits"]
        assert len(hits) == len(twice)
        groups: dict[str, set[int]] = {}
        leaders = []
        for hit in hits:
            group = hit["_source"]["_dedup"]["group"]
            groups.setdefault(hit["_id"].removesuffix("-again"), set()).add(group)
            leaders += [group] if hit["_source"]["_dedup"].get("leader") else []
        assert all(len(several) == 1 for several in groups.values())
        assert len(leaders) == len(set(leaders)) == len(set().union(*groups.values()))

    return check


def test_numbers_agree_when_a_node_is_killed_while_they_are_given_and_made_anew(
    mishap, grouped, admin, pipeline, recipe, twice, led
):
    disturbed = mishap("primary", grouped, stays=True)
    engine = disturbed.at("msearch", 1)
    numbers = Numbering(engine, grouped, recipe)
    summary = index_documents(engine, grouped, twice, pipeline, workers=1, backoff=LONG, groups=numbers)
    disturbed.check_it_happened()
    assert (summary.indexed, summary.failed, summary.stopped) == (len(twice), 0, "")
    led(grouped)
    # Somebody's numbers are wrong now.
    wrong = {"_dedup": {"group": 5, "leader": False}}
    changes = [{"_op_type": "update", "_index": grouped, "_id": one["id"], "doc": wrong} for one in twice]
    assert not admin.bulk(changes[::3]).failures
    disturbed = mishap("primary", grouped, stays=True)
    made = regroup(disturbed.at("search", 5), grouped, RegroupOptions(backoff=LONG))
    disturbed.check_it_happened()
    counts = made.counts
    assert (counts.read, counts.failed, counts.without_fingerprint, made.stopped) == (len(twice), 0, 0, "")
    led(grouped)
    # What reads all begins anew where a node takes a point in time with it.
    disturbed = mishap("primary", grouped, stays=True)
    report = make_report(disturbed.at("search", 3), grouped)
    disturbed.check_it_happened()
    assert report.to_json()["documents"] == len(twice)
    disturbed = mishap("primary", grouped, stays=True)
    found = diagnose(disturbed.at("search", 3), grouped, pipeline, DoctorOptions(workers=1))
    disturbed.check_it_happened()
    assert (found.findings, found.ungrouped) == ({"sound": len(twice)}, 0)
