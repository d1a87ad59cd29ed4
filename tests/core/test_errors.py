"""What errors say and quote."""

import inspect
import pickle
import re

import pytest
from support.soon import soon

from shinglefold import errors
from shinglefold.errors import (
    MOST,
    MissingExtra,
    RecipeMismatch,
    Refused,
    SchemeMismatch,
    ShinglefoldError,
    quote,
    shorten,
)

CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and cls.__module__ == errors.__name__
}


def test_the_drawn_tree_is_the_tree():
    drawn: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if (found := re.match(r"([ │├└─]*)([A-Z]\w+)(?:\s{2,}|$)", line)) and found[2] in CLASSES:
            depth = len(found[1])
            above = [(d, n) for d, n in above if d < depth]
            drawn.append((found[2], above[-1][1] if above else "Exception"))
            above.append((depth, found[2]))
    assert dict(drawn) == {name: cls.__base__.__name__ for name, cls in CLASSES.items()}


def test_every_error_has_one_root():
    assert all(issubclass(cls, ShinglefoldError) for cls in CLASSES.values())


@pytest.mark.parametrize(
    "error",
    [
        MissingExtra("ru", "Russian"),
        SchemeMismatch("sf1-a", "sf1-b", "the index", "Run it again."),
        RecipeMismatch("the pipeline", "one", "another", "the index", "Run it again."),
        Refused("It resembles another", "7", 0.9, 3),
    ],
)
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_engine_that_fails_has_lost_nothing_unless_it_says_so(name):
    assert getattr(CLASSES[name], "lost", 0) == 0


def nested(depth: int, kind: type) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


def test_what_is_counted_stands_in_its_number():
    told = [errors.counted(count, "document") for count in (0, 1, 2, 12_345)]
    assert told == ["0 documents", "1 document", "2 documents", "12,345 documents"]
    assert errors.counted(1, "copy has", "copies have") == "1 copy has"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        ("a 'b'", "\"a 'b'\""),
        ([1, "a", None], "[1, 'a', None]"),
        ((1, [2], {"a": {"b": ()}}), "(1, [2], {'a': {'b': ()}})"),
        ({"a": [1.5, True], "b": b"x"}, "{'a': [1.5, True], 'b': b'x'}"),
        (2**255, repr(2**255)),
        (-(2**256), "a number of about 77 digits"),
        (10**400, "a number of about 400 digits"),
    ],
)
def test_what_is_small_is_shown_as_python_writes_it(value, shown):
    assert quote(value) == shown


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000_000, {"y" * 300: "z" * 300}, [["x" * 300] * 9] * 9, b"x" * 900],
    ids=["text", "object", "lists", "bytes"],
)
def test_a_message_quotes_so_many_characters_at_most(value):
    with soon(walks=4):
        assert len(quote(value)) <= MOST


def test_eight_items_are_shown_and_a_ninth_is_hinted_at():
    assert quote(list(range(8))) == "[0, 1, 2, 3, 4, 5, 6, 7]"
    assert quote(list(range(9))) == "[0, 1, 2, 3, 4, 5, 6, 7, …]"
    assert quote(dict.fromkeys(range(9))).endswith("7: None, …}")


def test_four_levels_are_shown_and_a_fifth_is_hinted_at():
    assert quote(nested(4, list)) == "[[[[1]]]]"
    assert quote(nested(5, list)) == "[[[[[…]]]]]"
    assert quote(nested(4, dict)) == "{'a': {'a': {'a': {'a': 1}}}}"
    assert quote(nested(5, dict)) == "{'a': {'a': {'a': {'a': {…}}}}}"
    assert quote({(1, 2): 3}) == "{(…): 3}"


def test_two_hundred_characters_are_shown_and_of_more_the_first():
    assert quote(10**5000) == "a number of about 5000 digits"
    assert len(quote([10**64, 10**65, 10**62])) == 200
    assert quote([10**64, 10**65, 10**62]).endswith("0]")
    assert quote([10**64, 10**65, 10**63]) == repr([10**64, 10**65, 10**63])[:199] + "…"


def test_a_long_text_is_cut_and_its_quotation_mark_stays_open():
    assert quote("x" * 198) == f"'{'x' * 198}'"
    assert quote("x" * 199) == f"'{'x' * 198}…"
    assert quote("x" * 300) == f"'{'x' * 198}…"
    assert shorten("x" * 199) == "x" * 199
    assert shorten(["x"]) == "['x']"
