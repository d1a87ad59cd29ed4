"""Group numbers where texts decide about pairs in doubt: at insert and by regrouping."""

from dataclasses import replace

import numpy as np
import pytest
from support.gate.moved import moved_words, replaced_words
from support.maintenance import put, stored

from shinglefold.errors import ConfigError, ShinglefoldError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.regroup.text_verdicts import ALIKE, APART, UNKNOWN, VerdictLog
from shinglefold.grouping.rules import Rules
from shinglefold.grouping.similarity import similarity_model
from shinglefold.ingest import index_documents
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.model.recipe import Recipe
from shinglefold.offline.compare_texts import compare_texts

BY_SIGNATURE = Rules(verify="signature")
LINKAGES = pytest.mark.parametrize("linkage", ["leader", "connected"])


@pytest.fixture(scope="module", params=["moved", "replaced"])
def pair(request, pipeline):
    """Two texts, and whether they match, on which signatures are wrong."""
    moved = request.param == "moved"
    texts = moved_words() if moved else replaced_words()
    for verify, folds in (("text", moved), ("signature", not moved)):
        scheme = pipeline.scheme.with_options(verify=verify)
        told = compare_texts(texts, ("a", "b"), (None, None), scheme)
        assert told.folds == folds, (verify, told.similarity, told.estimate)
    return texts, moved


def _given(texts):
    return [{"id": f"{at}", "body": text} for at, text in enumerate(texts)]


def _numbering(engine, pipeline, rules=None):
    recipe = Recipe.of(engine.mappings("texts"), "texts")
    return Numbering(engine, "texts", recipe, rules=rules or Rules())


def _index(engine, pipeline, documents, numbering):
    summary = index_documents(engine, "texts", documents, pipeline, workers=1, groups=numbering)
    assert summary.failed == 0


def _together(engine):
    one, other = (source["_dedup"]["group"] for source in stored(engine, "texts").values())
    return one == other


@pytest.mark.long(every=6)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("how", ["one batch", "one run", "two runs"])
def test_texts_decide_about_new_and_stored_documents(engine, pipeline, pair, how, swapped):
    texts, alike = pair
    first, second = _given(texts[::-1] if swapped else texts)
    numbering = _numbering(engine, pipeline)
    if how == "one batch":
        _index(engine, pipeline, [first, second], numbering)
    else:
        _index(engine, pipeline, [first], numbering)
        _index(engine, pipeline, [second], numbering if how == "one run" else _numbering(engine, pipeline))
    assert _together(engine) == alike


def test_verify_signature_is_noted_and_later_runs_follow_it(engine, pipeline, pair):
    texts, alike = pair
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline, BY_SIGNATURE))
    assert _together(engine) != alike
    assert Recipe.of(engine.mappings("texts"), "texts").grouping == {"verify": "signature"}
    assert _numbering(engine, pipeline).rules == BY_SIGNATURE
    assert regroup(engine, "texts").counts.planned == 0


@LINKAGES
def test_regrouping_by_texts_settles(engine, pipeline, pair, linkage):
    texts, alike = pair
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline, BY_SIGNATURE))
    regroup(engine, "texts", RegroupOptions(by_scheme=True, linkage=linkage, verify="text"))
    assert _together(engine) == alike
    again = regroup(engine, "texts")
    assert (again.verify, again.counts.planned, again.counts.by_text) == ("text", 0, 1)


@LINKAGES
def test_regrouping_by_signature_splits_and_merges_groups(engine, pipeline, pair, linkage):
    texts, alike = pair
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline))
    summary = regroup(engine, "texts", RegroupOptions(linkage, verify="signature"))
    assert (summary.verify, summary.counts.by_text, summary.counts.planned) == ("signature", 0, 1)
    assert _together(engine) != alike


def test_a_length_ratio_of_its_own_decides_in_regrouping(engine, pipeline, text):
    whole = text("a")
    _index(engine, pipeline, _given([whole, f"{whole} {text('b', words=30)}"]), None)
    for ratio, together in ((0.95, False), (0.8, True)):
        regroup(engine, "texts", RegroupOptions(verify="signature", min_length_ratio=ratio))
        assert _together(engine) == together


def test_gate_insert_and_regrouping_agree(engine, pipeline, pair):
    texts, alike = pair
    first, second = _given(texts)
    _index(engine, pipeline, [first], _numbering(engine, pipeline))
    with Gate(engine, "texts", Policy("tag"), pipeline=pipeline) as gate:
        verdict = gate.add(second)
    assert verdict.leads is not alike
    assert regroup(engine, "texts").counts.planned == 0


@LINKAGES
def test_signatures_decide_where_a_text_is_missing(engine, pipeline, pair, linkage):
    texts, alike = pair
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline))
    dedup = engine.get("texts", "1")["_source"]["_dedup"]
    engine.bulk([{"_index": "texts", "_id": "1", "_source": {"_dedup": dedup}}])
    summary = regroup(engine, "texts", RegroupOptions(linkage))
    assert (summary.counts.by_text, summary.counts.by_signature >= 1) == (0, True)
    assert _together(engine) != alike


@LINKAGES
def test_no_verdict_is_kept_of_a_text_that_has_changed(engine, pipeline, pair, linkage):
    texts, alike = pair
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline))
    others = iter([" ".join(f"other{at}" for at in range(90)) if alike else texts[0], texts[1]])

    def write(what, _documents, _share):
        if what == "grouping" and (body := next(others, None)) is not None:
            (outcome,) = pipeline.run_block([{"body": body}])
            put(engine, "texts", {"1": outcome.document})

    summary = regroup(engine, "texts", RegroupOptions(linkage), report=write)
    assert (summary.settled, summary.counts.by_signature >= 1) == (True, True)
    assert _together(engine) == alike


def test_a_missing_dictionary_is_an_error_where_texts_must_decide(engine, pipeline):
    languages = tuple(replace(one, version="another") for one in pipeline.scheme.languages)
    recipe = replace(pipeline.recipe(), scheme=replace(pipeline.scheme, languages=languages))
    likeness = similarity_model(recipe, Rules(verify="text"), None, Values.of_all(engine, "texts", ()))
    with pytest.raises(ShinglefoldError, match="another"):
        likeness.stage.ready()


def _cut(what, _documents, _share):
    if what == "writing":
        raise KeyboardInterrupt


@LINKAGES
def test_verdicts_of_texts_are_kept_beside_the_checkpoint(
    engine, pipeline, pair, tmp_path, monkeypatch, linkage
):
    texts, _ = pair
    monkeypatch.setattr("shinglefold.grouping.regroup.run._ALONE", 1)
    _index(engine, pipeline, _given(texts), _numbering(engine, pipeline, BY_SIGNATURE))
    options = RegroupOptions(linkage, by_scheme=True, verify="text", checkpoint=tmp_path / "kept.json")
    first = regroup(engine, "texts", options, report=_cut)
    assert (first.stopped, first.counts.by_text) == ("interrupted", 1)
    kept = tmp_path / "kept.json.texts"
    # The process died in the middle of a row.
    kept.write_bytes(kept.read_bytes() + b"half")
    second = regroup(engine, "texts", options)
    assert (second.settled, second.counts.by_text, second.counts.by_signature) == (True, 1, 0)
    assert not list(tmp_path.glob("kept*"))


def test_a_log_of_verdicts_knows_those_of_its_job_in_either_order(tmp_path):
    path, job = tmp_path / "kept.texts", {"index": "texts"}
    ones, others = [f"a{at}" for at in range(9)], [f"b{at}" for at in range(9)]
    given = np.array([ALIKE, APART, UNKNOWN] * 3, np.int8)
    log = VerdictLog(path, job)
    for at in range(0, 9, 3):
        log.keep(log.pairs(ones[at : at + 3], others[at : at + 3]), given[at : at + 3])
        assert log.verdicts_on(log.pairs(ones, others)).tolist() == [*given[: at + 3], *[UNKNOWN] * (6 - at)]
    # The process dies in the middle of a row, after a run that did so, too.
    for _ in range(2):
        path.write_bytes(path.read_bytes() + b"half")
        log = VerdictLog(path, job)
        log.keep(log.pairs(["a"], ["b"]), np.array([ALIKE], np.int8))
    again = VerdictLog(path, job)
    assert again.verdicts_on(again.pairs([*others, "b"], [*ones, "a"])).tolist() == [*given, ALIKE]
    other = VerdictLog(path, {"index": "others"})
    assert other.verdicts_on(other.pairs(ones, others)).tolist() == [UNKNOWN] * 9
    # It dies in the middle of the first bytes.
    path.write_bytes(path.read_bytes()[:3])
    cut = VerdictLog(path, job)
    assert cut.verdicts_on(cut.pairs(ones, others)).tolist() == [UNKNOWN] * 9


def test_a_document_leads_until_it_is_deleted(engine, pipeline, text):
    assert regroup(engine, "texts").settled
    for shared, (id_, edits) in enumerate((("2", 0), ("1", 3))):
        index_documents(engine, "texts", [{"id": id_, "body": text("a", edits)}], pipeline, workers=1)
        counts = regroup(engine, "texts").counts
        assert (counts.numbered, counts.relabelled, counts.groups, counts.shared) == (1, 0, 1, shared)
        assert _leaders(engine) == ["2"]
    engine.bulk([{"_op_type": "delete", "_index": "texts", "_id": "2"}])
    counts = regroup(engine, "texts").counts
    assert (counts.numbered, counts.relabelled) == (0, 1)
    assert _leaders(engine) == ["1"]


def _leaders(engine):
    return [id_ for id_, source in stored(engine, "texts").items() if source["_dedup"]["leader"]]


def test_a_member_is_in_the_group_of_the_leader_that_it_resembles_most(engine, pipeline, text):
    documents = [{"id": f"{at}", "body": text("a", edits)} for at, edits in enumerate((0, 14, 8))]
    _index(engine, pipeline, documents, None)
    regroup(engine, "texts", RegroupOptions("leader", min_similarity=0.9))
    first, second, between = (source["_dedup"]["group"] for source in stored(engine, "texts").values())
    assert first != second == between


def test_two_thresholds_are_refused_and_min_similarity_overrides_a_noted_one(engine, pipeline):
    with pytest.raises(ConfigError, match="one of them decides"):
        RegroupOptions(min_resemblance=0.7, min_similarity=0.8)
    noted = replace(default_recipe(pipeline.scheme), grouping=Rules(min_resemblance=0.7).to_json())
    rules = Rules(min_similarity=0.9).or_noted(noted)
    assert rules.verified_by(pipeline.scheme.decision) == "text"
    regroup(engine, "texts", RegroupOptions(min_resemblance=0.7))
    with Gate(engine, "texts", Policy("tag", min_similarity=0.9), pipeline=pipeline) as gate:
        assert gate.policy.min_similarity == 0.9


def test_verify_keywords_groups_documents_that_share_one(engine, pipeline):
    _index(engine, pipeline, _given(moved_words()), _numbering(engine, pipeline, BY_SIGNATURE))
    summary = regroup(engine, "texts", RegroupOptions(verify="keywords"))
    assert (summary.verify, summary.counts.merged_from) == ("keywords", 2)
    assert _together(engine)


def test_a_scope_is_compared_as_the_index_has_it(engine, pipeline, text):
    documents = [
        {"id": "0", "body": text("a"), "host": True},
        {"id": "1", "body": text("a", 1), "host": "true"},
    ]
    scoped = replace(Rules(), scope=("host",))
    _index(engine, pipeline, documents[:1], _numbering(engine, pipeline, scoped))
    _index(engine, pipeline, documents[1:], _numbering(engine, pipeline))
    assert _together(engine)
    assert regroup(engine, "texts").counts.planned == 0


@pytest.mark.parametrize("name", ["day", "nowhere"])
def test_a_scope_that_cannot_be_compared_is_refused_before_anything_is_written(engine, pipeline, text, name):
    engine.put_mappings("texts", {"properties": {"day": {"type": "date"}}})
    with pytest.raises(ConfigError, match=f"the scope '{name}' is .*; name a keyword"):
        _numbering(engine, pipeline, Rules(scope=(name,)))
    if name == "day":
        with pytest.raises(ConfigError, match="of type date"):
            regroup(engine, "texts", RegroupOptions(scope=(name,)))
    assert Recipe.of(engine.mappings("texts"), "texts").grouping == {}


def test_a_value_that_the_index_ignores_is_no_scope_value(engine, pipeline, text):
    engine.put_mappings("texts", {"properties": {"short": {"type": "keyword", "ignore_above": 3}}})
    documents = [
        {"id": f"{at}", "body": text("a", at), "short": value} for at, value in enumerate(["longer"] * 2)
    ]
    _index(engine, pipeline, documents, _numbering(engine, pipeline, Rules(scope=("short",))))
    assert not _together(engine)
    assert regroup(engine, "texts").counts.planned == 0
