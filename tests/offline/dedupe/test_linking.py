"""Work slot by slot finds what ``find_pairs`` finds: the same pairs, the same groups, in the same order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made_up import SKETCH, columns, made_up, one_text
from support.servers.choose import examples

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Decision, Scheme
from shinglefold.offline.dedupe import fingerprint_table, link, slots
from shinglefold.offline.dedupe.fingerprint_table import DIGESTED, FingerprintTable
from shinglefold.offline.dedupe.link import Linking, groups_of
from shinglefold.offline.dedupe.slots import LinkOptions
from shinglefold.sketch.all_pairs import Pairs, find_pairs
from shinglefold.sketch.clustering import connected_components, leader_clusters

_AMPLE = LinkOptions(memory=1 << 30)
_SIGNATURE = Decision(verify="signature", min_resemblance=0.5, min_length_ratio=0.8)
_SCHEMES = [
    Scheme(sketch=SKETCH, decision=decision)
    for decision in (
        _SIGNATURE,
        replace(_SIGNATURE, min_shared=2),
        replace(_SIGNATURE, min_length_ratio=0.0, min_resemblance=0.3),
        replace(_SIGNATURE, verify="keywords"),
        replace(_SIGNATURE, verify="keywords", min_shared=2),
    )
]
_COLLECTIONS = {
    "seed": st.integers(0, 2**32),
    "count": st.integers(1, 120),
    "scheme": st.sampled_from(_SCHEMES),
    "whole": st.booleans(),
}


def listed(found: Linking, sort: str = "document") -> list[tuple[float, ...]]:
    rows = [tuple(row) for some in found.pairs(sort) for row in some.tolist()]
    return [tuple(np.nan_to_num(row, nan=-1.0).tolist()) for row in rows]


def reference(table: FingerprintTable) -> Pairs:
    digests = table.digests.mapped().tolist()
    told = ((table.flags.mapped() & DIGESTED) > 0).tolist()
    return find_pairs(
        table.words.mapped().astype(np.uint64, copy=False),
        table.signatures.mapped(),
        table.shingles.mapped(),
        [bytes(one) if there else b"" for one, there in zip(digests, told, strict=True)],
        table.scheme.sketch,
        table.scheme.decision,
        table.valid(),
    )


def in_order(found: Pairs, sort: str) -> list[tuple[float, ...]]:
    rows = zip(found.a, found.b, found.resemblance, np.nan_to_num(found.similarity, nan=-1.0), strict=True)
    plain = [tuple(map(float, row)) for row in rows]
    return sorted(plain, key=lambda row: (0 if sort == "document" else -round(row[2], 4), row[0], row[1]))


@settings(deadline=None, max_examples=examples(60))
@given(**_COLLECTIONS, sort=st.sampled_from(["document", "resemblance"]))
def test_pairs_are_those_of_the_reference_and_in_order(seed, count, scheme, whole, sort):
    with made_up(seed, count, scheme, whole) as table:
        linking = Linking(table, _AMPLE)
        assert listed(linking, sort) == in_order(reference(table), sort)
    assert linking.skipped.to_json() == {"pairs": 0, "crowded": 0, "copies": 0}


@settings(deadline=None, max_examples=examples(60))
@given(**_COLLECTIONS, linkage=st.sampled_from(["connected", "leader"]))
def test_groups_are_those_of_the_reference(seed, count, scheme, whole, linkage):
    with made_up(seed, count, scheme, whole) as table:
        found, group = reference(table), connected_components if linkage == "connected" else leader_clusters
        assert Linking(table, _AMPLE).labels(linkage).tolist() == group(found.a, found.b, count).tolist()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("changed", [0.0, 0.02])
def test_thousands_of_copies_do_not_fill_the_memory_with_their_pairs(changed):
    with columns(one_text(3_000, _SCHEMES[0], changed), _SCHEMES[0]) as table:
        # Four and a half million pairs take more than this, the documents far less.
        linking = Linking(table, LinkOptions(memory=10_000_000))
        leaders = linking.labels("leader")
        labels = linking.labels("connected")
        with pytest.raises(
            ConfigError, match=r"more than 138,888 pairs.*--most-shared.*shinglefold\.cli\.spark"
        ):
            list(linking.pairs())
        fewer = Linking(table, LinkOptions(memory=10_000_000, most_shared=100))
        assert 0 < len(listed(fewer)) < 138_888
    # Some have no fingerprint, and a tenth is too short to match the others.
    assert np.bincount(labels).max() >= np.bincount(leaders).max() > 2_500
    assert fewer.skipped.pairs + fewer.skipped.copies > 0


def test_more_documents_than_memory_holds_are_refused():
    with (
        made_up(5, 400, _SCHEMES[0]) as table,
        pytest.raises(ConfigError, match=r"400 documents, and --memory holds 156.*shinglefold\.cli\.spark"),
    ):
        Linking(table, LinkOptions(memory=10_000))


def test_more_near_duplicates_than_memory_holds_are_refused(monkeypatch):
    with columns(one_text(200, _SCHEMES[0], 0.02), _SCHEMES[0]) as table:
        monkeypatch.setattr(link, "_A_DOCUMENT", 1)
        linking = Linking(table, LinkOptions(memory=200))
        with pytest.raises(ConfigError, match=r"have near-duplicates, and --memory holds .*connected"):
            linking.labels("leader")
        assert np.bincount(linking.labels("connected")).max() > 100


def test_few_documents_are_compared_without_a_limit():
    options = LinkOptions(memory=1)
    assert [options.limit(count) for count in (slots.FEW, slots.FEW + 1)] == [slots.FEW, slots.MOST_SHARED]
    assert LinkOptions(memory=1, most_shared=7).limit(10) == 7


@pytest.mark.parametrize("sort", ["document", "resemblance"])
def test_however_few_documents_are_read_at_a_time_nothing_changes(monkeypatch, sort):
    with made_up(6, 200, _SCHEMES[0]) as table:
        expected = [listed(Linking(table, _AMPLE), sort), Linking(table, _AMPLE).labels("leader").tolist()]
        monkeypatch.setattr(fingerprint_table, "_ROWS", 7)
        monkeypatch.setattr(link, "_TOGETHER", 7)
        few = Linking(table, _AMPLE)
        assert [listed(few, sort), few.labels("leader").tolist()] == expected


def test_a_supershingle_of_very_many_is_looked_at_by_leaders_and_what_that_leaves_out_is_told():
    with made_up(3, 600, _SCHEMES[0], crowd=300) as table:
        every = Linking(table, _AMPLE)
        few = Linking(table, LinkOptions(1 << 30, most_shared=100))
        found, all_of_them = set(listed(few, "document")), set(listed(every, "document"))
        groups = Linking(table, LinkOptions(1 << 30, most_shared=100))
        labels = groups.labels("connected")
        expected = every.labels("connected")
    assert found <= all_of_them
    assert 0 < len(all_of_them) - len(found) <= few.skipped.pairs
    assert few.skipped.crowded == 1
    # A group may fall apart, two groups never become one.
    assert len({*zip(labels.tolist(), expected.tolist(), strict=True)}) == len(set(labels.tolist()))
    assert groups.skipped.crowded <= 1


def test_where_keywords_decide_a_crowd_is_one_group_and_nothing_is_left_out():
    with made_up(3, 600, _SCHEMES[3], crowd=300) as table:
        few = Linking(table, LinkOptions(1 << 30, most_shared=100))
        assert few.labels("connected").tolist() == Linking(table, _AMPLE).labels("connected").tolist()
        assert few.skipped.pairs == 0


@pytest.mark.parametrize("copies", [3, 40])
def test_many_copies_of_a_text_are_listed_with_the_first_of_them(copies):
    with made_up(1, 60, _SCHEMES[0]) as table:
        block = table.digests.mapped()[:1].repeat(copies, axis=0)
        for column in (table.words, table.signatures, table.shingles, table.flags):
            column.append(column.mapped()[:1].repeat(copies, axis=0))
        table.digests.append(block)
        few = Linking(table, LinkOptions(1 << 30, most_shared=10))
        found, every = listed(few, "document"), listed(Linking(table, _AMPLE), "document")
    assert set(found) <= set(every)
    assert len(every) - len(found) == few.skipped.copies
    assert (few.skipped.copies > 0) == (copies == 40)


def test_groups_come_as_they_were_read_or_by_size():
    labels = np.array([0, 1, 0, 3, 1, 1, 6], np.int32)
    read = [places.tolist() for places in groups_of(labels, 2, by_size=False)]
    assert read == [[0, 2], [1, 4, 5]]
    assert [places.tolist() for places in groups_of(labels, 2, by_size=True)] == read[::-1]
    assert [len(places) for places in groups_of(labels, 1, by_size=False)] == [2, 3, 1, 1]
    assert list(groups_of(np.zeros(0, np.int32), 1, by_size=True)) == []
