"""The roles that docs/security.md names suffice for what it says."""

import re
from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, store, stored, wrongly_signed

from shinglefold.cli.main import main
from shinglefold.ingest import Fingerprinter, index_documents
from shinglefold.maintenance import BackfillOptions, backfill, diagnose

INDEX = "public-pages"
_PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text("utf-8")
#: What the page lists for who sets an index up and takes all out again: rights on the index, on the cluster.
ON_INDEX, ON_CLUSTER = (
    re.findall(r"`([^`]+)`", cell)
    for cell in re.search(r"^\| sets up [^|]*\|([^|]*)\|([^|]*)\|$", _PAGE, re.MULTILINE).groups()
)
#: What the server says is missing, for rights that are several.
_MISSING = {
    "read": "indices:data/read/",
    "write": "indices:admin/mapping/put",
    "cluster_composite_ops": "indices:data/write/bulk",
}
_LIFE = (
    ("setup", "public-life", "--field", "title", "--field", "body"),
    ("backfill", "public-life", "--workers", "1"),
    ("setup", "public-life", "--remove"),
)


@pytest.fixture
def empty(site) -> str:
    """Another index that is set up for fingerprints, without documents."""
    name = "public-kept"
    if site.engine.index_exists(name):
        site.engine.delete_index(name)
    site.engine.create_index(name, site.engine.mappings(INDEX), {})
    return name


def test_who_reads_documents_and_mappings_examines(engine_of, users, site, pipeline):
    found = diagnose(engine_of(users["examiner"]), INDEX, pipeline)
    assert (found.healthy, found.documents) == (True, 60)
    assert any("may not read templates" in remark for remark in found.remarks)


def test_a_keeper_indexes_and_backfills(engine_of, users, site, pipeline, empty, scheme, canonicalizer):
    keeper, documents = engine_of(users["keeper"]), pages(40)
    summary = index_documents(keeper, empty, documents[:20], pipeline, workers=1)
    assert (summary.indexed, summary.failed, summary.stopped) == (20, 0, "")
    store(keeper, empty, documents[20:])
    done = backfill(keeper, empty, pipeline, BackfillOptions(workers=1))
    assert (done.stopped, done.remaining, done.counts.updated, done.counts.unchanged) == ("", 0, 20, 20)
    assert not list(wrongly_signed(stored(site.engine, empty), Fingerprinter(scheme, canonicalizer)))


@pytest.fixture
def live(engine_of, users):
    """Make an index with documents, anew."""
    admin = engine_of(users["chief"])

    def make() -> None:
        if admin.index_exists("public-life"):
            admin.delete_index("public-life")
        admin.create_index("public-life", {"properties": FIELDS}, {"number_of_replicas": 0})
        store(admin, "public-life", pages(5))

    yield make
    admin.delete_index("public-life")


@pytest.mark.parametrize("without", ["", *ON_INDEX, *ON_CLUSTER])
def test_setup_backfill_and_removal_need_each_right_of_the_page_and_no_other(owner, live, capsys, without):
    live()
    owner([one for one in ON_INDEX if one != without], [one for one in ON_CLUSTER if one != without])
    for command in _LIFE:
        code = main([*command])
        told = capsys.readouterr()
        if code:
            break
    if not without:
        assert code == 0, told
    else:
        assert code == 1, without
        assert f"[{_MISSING.get(without, without.rstrip('*'))}" in told.err
        assert "Ask for a role that allows it" in told.err
