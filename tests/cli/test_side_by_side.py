"""Passages cut at their marks, for a console and as JSON."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.cli.shared.pairs import marked_parts, passage_json
from shinglefold.model.values import Token
from shinglefold.passages.alignment import find_passages


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    for word in text.split(" "):
        found.append(Token(word.lower(), at, at + len(word), "en"))
        at += len(word) + 1
    return found


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.lists(st.sampled_from("abcdef"), max_size=60))
@settings(max_examples=examples(150), deadline=None)
def test_outside_the_marks_both_sides_have_the_same_tokens(one, other):
    a, b = " ".join(one), " ".join(other)
    taken = []
    for passage in find_passages(_tokens(a), _tokens(b)):
        told = passage_json(passage, a, b)
        left, right = ([text for text, marked in marked_parts(told[side]) if not marked] for side in "ab")
        assert " ".join(left).split() == " ".join(right).split()
        assert len(" ".join(left).split()) == passage.equal
        taken.append(passage.a)
    assert taken == sorted(taken)


def test_pieces_join_to_the_passage():
    differing = [{"start": 9, "end": 12, "text": "two"}]
    side = {"start": 5, "end": 23, "text": "one two three four", "differing": differing}
    assert list(marked_parts(side)) == [("one ", False), ("two", True), (" three four", False)]


def test_json_tells_places_and_words():
    a, b = "we feed the hungry starter every day", "we feed the starter every day"
    told = passage_json(find_passages(_tokens(a), _tokens(b))[0], a, b)
    assert told["a"]["differing"] == [{"start": 12, "end": 18, "text": "hungry"}]
    assert told["b"] == {"start": 0, "end": len(b), "text": b, "differing": []}
    assert told["equal_tokens"] == 6
