"""What a writer has taken is known until it is committed, also where a commit was interrupted."""

from shinglefold.engines.embedded.store.document_encoder import StoredSource
from shinglefold.engines.embedded.store.write_ahead_log import Memtable


def _taken(*rounds):
    """Return what rounds of documents leave, by id and the value of ``word``, each about to be committed."""
    kept = Memtable(frozenset({"word"}))
    for documents in rounds:
        for id_, word in documents.items():
            kept.put(
                id_,
                StoredSource(b'{"word":"%b"}' % word.encode(), b'["%b",{}]' % id_.encode()),
                {"word": word},
            )
        kept.freeze()
    return kept


def test_of_two_versions_that_wait_for_their_commit_the_later_one_counts():
    kept = _taken({"a": "x", "b": "x"}, {"a": "y"})
    assert kept.sources(["a", "b", "c"]) == {"a": {"word": "y"}, "b": {"word": "x"}}
    kept.put("a", None, {})
    assert (kept["a"], kept["b"].load()) == (None, {"word": "x"})


def test_documents_of_one_value_are_all_told():
    kept = _taken({"a": "x"}, {"b": "x", "c": "y"}, {"d": "x"})
    kept.put("e", StoredSource(b'{"word":"x"}', b'["e",{}]'), {"word": "x"})
    assert kept.ids_by_value("word", {"x", "y", "z"}) == {"x": ["a", "b", "d", "e"], "y": ["c"]}
    kept.discard_frozen()
    assert kept.ids_by_value("word", {"x", "y"}) == {"x": ["e"]}
    assert "a" not in kept
