"""Work in files finds what work in memory finds: the same pairs, the same groups, in the same order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made_up import SKETCH, columns, made_up, one_text
from support.servers.choose import examples

from shinglefold.ingest.linking import equal, linking, slots, sorting
from shinglefold.ingest.linking.linking import Linking, groups_of
from shinglefold.ingest.linking.stages import Options
from shinglefold.scheme import Decision, Scheme

_TINY, _AMPLE = Options(memory=2_000), Options(memory=1 << 30)
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


def listed(found: Linking, sort: str) -> list[tuple[float, ...]]:
    rows = [tuple(row) for some in found.pairs(sort) for row in some.tolist()]
    return [tuple(np.nan_to_num(row, nan=-1.0).tolist()) for row in rows]


@settings(deadline=None, max_examples=examples(60))
@given(**_COLLECTIONS, sort=st.sampled_from(["document", "resemblance"]))
def test_pairs_in_files_are_the_pairs_in_memory_and_in_their_order(seed, count, scheme, whole, sort):
    with made_up(seed, count, scheme, whole) as prints:
        ample, tiny = Linking(prints, _AMPLE), Linking(prints, _TINY)
        assert ample.in_memory()
        assert not tiny.in_memory() or count < 4
        assert listed(tiny, sort) == listed(ample, sort)
        assert tiny.skipped.to_json() == {"pairs": 0, "crowded": 0, "copies": 0}


@settings(deadline=None, max_examples=examples(60))
@given(**_COLLECTIONS, linkage=st.sampled_from(["connected", "leader"]))
def test_groups_in_files_are_the_groups_in_memory(seed, count, scheme, whole, linkage):
    with made_up(seed, count, scheme, whole) as prints:
        labels = [Linking(prints, options).labels(linkage).tolist() for options in (_TINY, _AMPLE)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("changed", [0.0, 0.02])
def test_thousands_of_copies_do_not_fill_the_memory_with_their_pairs(changed):
    with columns(one_text(3_000, _SCHEMES[0], changed), _SCHEMES[0]) as prints:
        # Four and a half million pairs take more than this, the documents far less.
        within = Linking(prints, Options(memory=100_000_000))
        assert not within.in_memory()
        labels = within.labels("connected")
        assert Linking(prints, _AMPLE).in_memory()
    # Some have no fingerprint, and a tenth is too short to match the others.
    assert np.bincount(labels).max() > 2_500


def test_boilerplate_that_many_have_in_common_is_no_reason_to_work_in_files():
    with made_up(3, 3_000, _SCHEMES[0], whole=True, crowd=2_500) as prints:
        assert Linking(prints, Options(memory=100_000_000)).in_memory()


@pytest.mark.parametrize("memory", [300, 3_000, 100_000])
def test_however_little_memory_there_is_nothing_changes(memory):
    with made_up(5, 400, _SCHEMES[0]) as prints:
        expected = Linking(prints, _AMPLE)
        assert listed(Linking(prints, Options(memory)), "document") == listed(expected, "document")


@pytest.mark.parametrize("sort", ["document", "resemblance"])
def test_however_few_documents_are_read_at_a_time_nothing_changes(monkeypatch, sort):
    with made_up(6, 200, _SCHEMES[0]) as prints:
        for module in (equal, linking, slots, sorting):
            monkeypatch.setattr(module, "_ROWS", 7)
        few, every = (Linking(prints, options) for options in (_TINY, _AMPLE))
        assert listed(few, sort) == listed(every, sort)
        for linkage in ("connected", "leader"):
            assert few.labels(linkage).tolist() == every.labels(linkage).tolist()


def test_a_supershingle_of_very_many_is_looked_at_by_leaders_and_what_that_leaves_out_is_told():
    with made_up(3, 600, _SCHEMES[0], crowd=300) as prints:
        every = Linking(prints, _AMPLE)
        few = Linking(prints, Options(memory=20_000, most_shared=100))
        found, all_of_them = set(listed(few, "document")), set(listed(every, "document"))
        groups = Linking(prints, Options(memory=20_000, most_shared=100))
        labels = groups.labels("connected")
        expected = every.labels("connected")
    assert found <= all_of_them
    assert 0 < len(all_of_them) - len(found) <= few.skipped.pairs
    assert few.skipped.crowded == 1
    # A group may fall apart, two groups never become one.
    assert len({*zip(labels.tolist(), expected.tolist(), strict=True)}) == len(set(labels.tolist()))
    assert groups.skipped.crowded <= 1


def test_where_keywords_decide_a_crowd_is_one_group_and_nothing_is_left_out():
    with made_up(3, 600, _SCHEMES[3], crowd=300) as prints:
        few = Linking(prints, Options(memory=20_000, most_shared=100))
        assert few.labels("connected").tolist() == Linking(prints, _AMPLE).labels("connected").tolist()
        assert few.skipped.pairs == 0


@pytest.mark.parametrize("copies", [3, 40])
def test_many_copies_of_a_text_are_listed_with_the_first_of_them(copies):
    with made_up(1, 60, _SCHEMES[0]) as prints:
        block = prints.digests.mapped()[:1].repeat(copies, axis=0)
        for column in (prints.words, prints.signatures, prints.shingles, prints.flags):
            column.append(column.mapped()[:1].repeat(copies, axis=0))
        prints.digests.append(block)
        few = Linking(prints, Options(memory=2_000, most_shared=10))
        found, every = listed(few, "document"), listed(Linking(prints, _AMPLE), "document")
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
