import pytest

from shinglefold.errors import ConfigError
from shinglefold.maintenance.scan import Slice


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
