"""What a writer has taken is known until it is committed, also where a commit was interrupted."""

from shinglefold.engines.embedded.sources import Source
from shinglefold.engines.embedded.uncommitted import Uncommitted


def _taken(*rounds):
    """Return what rounds of documents leave, by id and the value of ``word``, each about to be committed."""
    kept = Uncommitted(frozenset({"word"}))
    for documents in rounds:
        for id_, word in documents.items():
            kept.take(
                id_, Source(b'{"word":"%b"}' % word.encode(), b'["%b",{}]' % id_.encode()), {"word": word}
            )
        kept.turn()
    return kept


def test_of_two_versions_that_wait_for_their_commit_the_later_one_counts():
    kept = _taken({"a": "x", "b": "x"}, {"a": "y"})
    assert kept.sources(["a", "b", "c"]) == {"a": {"word": "y"}, "b": {"word": "x"}}
    kept.take("a", None, {})
    assert (kept["a"], kept["b"].load()) == (None, {"word": "x"})


def test_documents_of_one_value_are_all_told():
    kept = _taken({"a": "x"}, {"b": "x", "c": "y"}, {"d": "x"})
    kept.take("e", Source(b'{"word":"x"}', b'["e",{}]'), {"word": "x"})
    assert kept.having("word", {"x", "y", "z"}) == {"x": ["a", "b", "d", "e"], "y": ["c"]}
    kept.committed()
    assert kept.having("word", {"x", "y"}) == {"x": ["e"]}
    assert "a" not in kept
