"""Workers send unchanged texts back as placeholders, and results stay the same."""

import pickle

import pytest

from shinglefold.contracts.exclusive_writes import PreparedDocument
from shinglefold.ingest import Pipeline
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.writing.worker_pool import elide_texts, process_blocks, restore_texts

_TEXT = "слово за словом " * 40
_OTHER = "another text, word by word " * 20


def _done(document, words=None):
    return Outcome("done", document, prepared=None if words is None else PreparedDocument(words))


def test_texts_that_were_given_do_not_travel_and_are_there_again():
    asked = {"body": _TEXT, "copy": _TEXT, "other": _OTHER, "title": "short", "n": 1}
    made = _done({**asked, "_dedup": {"a": _TEXT}}, {_TEXT: "a b", _OTHER: "c", "short": "d"})
    sent = elide_texts(made, asked)
    assert len(pickle.dumps(sent.document["body"])) < 200
    assert {name: sent.document[name] for name in ("title", "n", "_dedup")} == {
        "title": "short", "n": 1, "_dedup": {"a": _TEXT},
    }  # fmt: skip
    back = restore_texts(pickle.loads(pickle.dumps(sent)), dict(asked))
    assert back == made
    assert back.document["body"] is asked["body"]


def test_what_the_pipeline_made_travels():
    equal = "".join(list(_TEXT))
    asked = {"body": _TEXT, "moved": _OTHER, "list": [_TEXT]}
    made = _done({"body": equal, "elsewhere": _OTHER, "list": asked["list"]}, {equal: "a"})
    assert elide_texts(made, asked) is made


@pytest.mark.parametrize("outcome", [Outcome("dropped"), _done({}), _done({"body": "short"})])
def test_where_nothing_is_spared_nothing_is_changed(outcome):
    assert elide_texts(outcome, {"body": "short"}) is outcome
    assert restore_texts(outcome, {"body": "short"}) is outcome
    assert restore_texts(outcome, None) is outcome


class Shortens:
    type = "shortens"

    def __init__(self, options, tools):
        pass

    def apply(self, documents):
        return [{**document, "changed": document["changed"][:-1]} for document in documents]


def test_workers_send_back_what_is_new_alone(scheme):
    steps = {"processors": [{"shortens": {}}, {"supershingle": {"field": "kept"}}]}
    pipeline = Pipeline.from_json(steps, scheme, processors={"shortens": Shortens})
    blocks = [[{"_id": f"{n}", "kept": f"{n} {_TEXT}", "changed": f"{n} {_OTHER}"}] for n in range(5)]

    def ready(documents):
        return [PreparedDocument({one["kept"]: "k", one["changed"]: "c"}) for one in documents]

    answers = list(process_blocks(pipeline, iter(blocks), 2, prepare_documents=ready))
    for (asked,), answer in zip(blocks, answers, strict=True):
        (sent,) = answer.outcomes
        assert len(pickle.dumps(sent.document)) < len(asked["kept"].encode())
        back = restore_texts(sent, asked)
        assert back.document["kept"] == asked["kept"]
        assert back.document["changed"] == asked["changed"][:-1]
        assert back.prepared.words == {asked["kept"]: "k", asked["changed"][:-1]: "c"}
