"""Documents as they are kept are given back as they came, whatever they are kept as and wherever they are."""

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.store.document_encoder import encode_source
from shinglefold.engines.embedded.store.write_ahead_log import Change, WriteAheadLog, read_journal

_TEXT = 'a long "text" with \\ and \ud800, ё or 中\n' * (1 << 16)


def test_a_long_text_comes_back_as_it_was():
    given = {'na"me': _TEXT, "short": ["x", 1], "inside": {"a": [1.5]}, "none": None, "назва": _TEXT}
    made = encode_source("a", given)
    assert made.apart
    assert len(made.main) < len(_TEXT)
    assert made.load() == given


def test_a_journal_gives_long_texts_back_too(tmp_path):
    given = {"body": _TEXT, "inside": {"a": 1}}
    journal = WriteAheadLog(tmp_path)
    journal.write([Change("a", encode_source("a", given)), Change("b", None)])
    journal.close()
    assert [(one.id, one.source and one.source.load()) for one in read_journal(tmp_path)] == [
        ("a", given),
        ("b", None),
    ]


def test_many_documents_are_read_as_they_are_now_though_no_refresh_has_come(tmp_path, words):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=2)) as engine:
        engine.create_index("i", {}, {})
        for number in range(3):
            engine.bulk([{"_index": "i", "_id": f"{number}", "_source": {"n": number}}])
        assert engine.get_all("i", ["0", "1", "2", "3"]) == [{"n": 0}, {"n": 1}, {"n": 2}, None]
