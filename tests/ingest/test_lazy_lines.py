"""Documents that travel to workers as the lines they were read from."""

import gc
import pickle

import pytest

from shinglefold.ingest import read
from shinglefold.ingest.readers.jsonl import LazyLineDocument
from shinglefold.ingest.writing.worker_pool import infrequent_gc

_LINE = '{"id": 7, "title": "Кот", "size": 1.5, "none": null}'


def _document(tmp_path, line=_LINE):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n", "utf-8")
    (record,) = read(path)
    return record.document


def test_a_document_travels_as_its_line_and_arrives_as_it_was_read(tmp_path):
    document = _document(tmp_path)
    sent = pickle.dumps(document)
    assert _LINE.encode() in sent
    assert pickle.loads(sent) == document == {"_id": "7", "id": 7, "title": "Кот", "size": 1.5, "none": None}
    assert type(pickle.loads(sent)) is type(dict(document)) is dict


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.__setitem__("title", "Пёс"),
        lambda one: one.__delitem__("title"),
        lambda one: one.__ior__({"new": 1}),
        lambda one: one.update(new=1),
        lambda one: one.setdefault("new", 1),
        lambda one: one.pop("size"),
        lambda one: one.popitem(),
        lambda one: one.clear(),
    ],
)
def test_a_document_that_was_changed_arrives_as_it_was_changed(tmp_path, change):
    document = _document(tmp_path)
    before = dict(document)
    change(document)
    assert pickle.loads(pickle.dumps(document)) == document != before


def test_every_method_that_changes_a_dictionary_is_watched():
    own = {name for name, method in vars(LazyLineDocument).items() if callable(method)}
    reading = {"copy", "fromkeys", "get", "items", "keys", "values"}
    assert {name for name in vars(dict) if not name.startswith("_")} <= own | reading


@pytest.mark.parametrize("line", ['{"tags": ["a"]}', '{"at": {"x": 1}}', f'{{"body": "{"а" * (1 << 21)}"}}'])
def test_what_could_be_changed_unseen_and_what_is_long_travels_as_it_is(tmp_path, line):
    assert type(_document(tmp_path, line)) is dict


def test_garbage_is_looked_for_among_what_is_new_and_afterwards_everywhere():
    # Python 3.12 sets some hundred objects aside by itself.
    assert gc.get_freeze_count() < 1_000
    with infrequent_gc():
        assert gc.get_freeze_count() > 1_000
    assert gc.get_freeze_count() < 1_000


def test_what_somebody_has_set_aside_stays_there():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        # Some of what was set aside may go meanwhile, in other threads.
        with infrequent_gc():
            assert before - 1_000 < gc.get_freeze_count() <= before
        assert before - 1_000 < gc.get_freeze_count() <= before
    finally:
        gc.unfreeze()


def test_garbage_is_looked_for_seldom_meanwhile_but_not_where_somebody_never_does():
    often = gc.get_threshold()
    try:
        for first, meanwhile in ((700, 10_000), (20_000, 20_000), (0, 0)):
            gc.set_threshold(first, *often[1:])
            with infrequent_gc():
                assert gc.get_threshold()[0] == meanwhile
            assert gc.get_threshold() == (first, *often[1:])
    finally:
        gc.set_threshold(*often)


def test_whoever_has_set_aside_what_is_there_keeps_that():
    gc.freeze()
    try:
        with infrequent_gc():
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()
