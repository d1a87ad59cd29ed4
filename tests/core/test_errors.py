"""What errors say and quote, and how shards that failed are told."""

import inspect
import pickle
import re

import pytest

from shinglefold import errors
from shinglefold.errors import (
    EngineUnavailable,
    MissingExtra,
    PitExpired,
    RecipeMismatch,
    Refused,
    SchemeMismatch,
    ShinglefoldError,
    UnsupportedQuery,
    WindowTooLarge,
    check_complete,
    lost_shards,
    quote,
    refuse_small_windows,
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
    assert len(quote([10**64, 10**65, 10**62])) == 200
    assert quote([10**64, 10**65, 10**62]).endswith("0]")
    assert quote([10**64, 10**65, 10**63]) == repr([10**64, 10**65, 10**63])[:199] + "…"


def test_a_long_text_is_cut_and_its_quotation_mark_stays_open():
    assert quote("x" * 198) == f"'{'x' * 198}'"
    assert quote("x" * 199) == f"'{'x' * 198}…"
    assert quote("x" * 300) == f"'{'x' * 198}…"
    assert shorten("x" * 199) == "x" * 199
    assert shorten(["x"]) == "['x']"


def _failed(kind: str, reason: str, **cause: object) -> dict:
    failure = {"index": "pages", "reason": {"type": kind, "reason": reason, **cause}}
    return {"_shards": {"total": 3, "successful": 2, "failed": 1, "failures": [failure]}}


_WINDOW = "Result window is too large, from + size must be less than or equal to: [100]"


@pytest.mark.parametrize(
    ("shards", "lost"),
    [
        ({"total": 3, "successful": 3, "failed": 0}, 0),
        ({"total": 3, "successful": 1, "failed": 0}, 2),
        ({"total": 3, "successful": 1, "failed": 1}, 2),
        ({"total": 3, "successful": 3, "failed": 1}, 1),
        ({"failed": 2}, 2),
        ({}, 0),
        (None, 0),
    ],
)
def test_a_shard_that_no_node_has_is_lost_like_one_that_failed(shards, lost):
    assert lost_shards({"_shards": shards}) == lost


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (_failed("search_context_missing_exception", "No search context"), PitExpired, "lost the point"),
        (_failed("illegal_state_exception", "no node found for id [x]"), PitExpired, "lost the point"),
        (_failed("illegal_argument_exception", "no such sort"), UnsupportedQuery, "no such sort"),
        (_failed("illegal_argument_exception", _WINDOW), WindowTooLarge, "'pages' allows fewer"),
        (_failed("node_closed", "gone"), EngineUnavailable, "not all shards answered: gone"),
        (_failed("node_closed", "long " * 500), EngineUnavailable, "long"),
        ({"_shards": {"total": 2, "successful": 1, "failed": 0}}, EngineUnavailable, "not all shards"),
        ({"timed_out": True, "_shards": {"total": 1, "successful": 1}}, EngineUnavailable, "timed out"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused_with_what_went_wrong(answer, error, said):
    with pytest.raises(error, match=said) as told:
        check_complete(answer)
    assert type(told.value) is error
    assert len(str(told.value)) < 400


def test_a_whole_answer_comes_back_as_it_is():
    answer = {"timed_out": False, "_shards": {"total": 2, "successful": 2, "failed": 0}, "hits": {}}
    assert check_complete(answer) is answer


def test_a_small_window_is_found_in_what_an_error_was_caused_by():
    inner = {"type": "illegal_argument_exception", "reason": _WINDOW}
    with pytest.raises(WindowTooLarge):
        refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by=inner))
    refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by={"reason": "x"}))
