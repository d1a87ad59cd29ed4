"""The language that documents declare is read from the field that the recipe of the index names."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON
from shinglefold.contracts.language import CanonOptions, Language
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import Refused
from shinglefold.gateway.pages import compare_page
from shinglefold.gateway.pages.documents import document_json
from shinglefold.gateway.pages.search_page import PARAMETERS, search_json
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.grouping import Gate
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.recipe import language_options, with_passages
from shinglefold.model.scheme import LanguageRef
from shinglefold.registry import load_languages, make_scheme
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.explanation import explain_pair
from shinglefold.rerank.matching import MatchOptions, MatchSearch

TEXT = "The bridge over the river closes for repairs in May and buses take another road until June"
#: The same words for ``Plain``, and others for every other language.
ENDINGS = " ".join(word if len(word) < 4 else f"{word}qx" for word in TEXT.split())


class Plain(Language):
    """A language whose words nothing but the declaration of a document tells from English."""

    code, scripts, precedence = "plain", frozenset({"Latn"}), 50

    def canonical(self, word):
        return f"plain-{word.removesuffix('qx')}"


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """``Plain`` among the installed languages."""

    def load(references):
        own = {"plain": (Plain(CanonOptions()),)}
        return tuple(one for each in references for one in own.get(each.code) or load_languages([each]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shinglefold.canon.canonicalizer.load_languages", load)
        yield


@pytest.fixture(scope="module")
def canonicalizer(installed) -> Canonicalizer:
    scheme = make_scheme(codes=["en", "any"])
    return Canonicalizer.of(replace(scheme, languages=(*scheme.languages, LanguageRef("plain", "1"))))


@pytest.fixture(scope="module", params=[{"language_field": "written.in"}, {"language": "plain"}], ids=str)
def pipeline(request: pytest.FixtureRequest, canonicalizer: Canonicalizer) -> Pipeline:
    scheme = replace(make_scheme(codes=["en", "any"]), languages=canonicalizer.references)
    step = {"fields": ["body"], "target_field": "_dedup", **request.param}
    return Pipeline.from_json(with_passages({"processors": [{"supershingle": step}]}, "_dedup"), scheme)


@pytest.fixture(scope="module")
def engine(tmp_path_factory, canonicalizer, pipeline) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("languages"), canonicalizer) as opened:
        opened.create_index("site", recipe_mappings(pipeline.recipe("_dedup")), {})
        declared = {"lang": "en", "written": {"in": "plain"}}
        made = pipeline.run({"body": text, **declared} for text in (TEXT, ENDINGS))
        actions = (
            {"_index": "site", "_id": f"{n}", "_source": one.document} for n, one in zip(count(), made)
        )
        assert not opened.bulk(actions).failures
        opened.refresh("site")
        yield opened


@pytest.mark.parametrize("source", [False, True])
def test_passages_are_found_in_it(engine, source):
    page = MatchSearch(engine, language="plain").find("site", TEXT, MatchOptions(source=source))
    assert [(one.id, one.share) for one in page.matches] == [("0", 1.0), ("1", 1.0)]
    assert page.unreadable == 0


def test_explanations_and_pages_read_it(engine, canonicalizer, pipeline):
    hits: list[JSON] = engine.search("site", {"query": {"match_all": {}}, "sort": ["_doc"]})["hits"]["hits"]
    recipe = pipeline.recipe("_dedup")
    found = explain_pair(
        (hits[0], hits[1]), pipeline.scheme, "_dedup", ("body",),
        mappings={"site": recipe_mappings(recipe)},
    )  # fmt: skip
    assert (found.facts["a"]["lang"], found.facts["folds"], len(found.passages)) == ("plain", True, 1)
    declared = canonicalizer.placed(TEXT, "plain").hashes.tolist()
    assert not found.passages[0].marks_a
    assert [one.hashes.tolist() for one in found.tokens] == [declared] * 2
    assert document_json(hits[0], recipe, "site")["lang"] == "plain"


def test_a_text_without_a_declaration_is_read_in_the_language_of_all(engine, pipeline):
    fixed = language_options(pipeline.recipe("_dedup").pipeline, "_dedup")[1] == "plain"
    page = MatchSearch(engine).find("site", ENDINGS, MatchOptions(min_share=0.01))
    assert [one.share for one in page.matches] == ([1.0, 1.0] if fixed else [])


def test_explained_pages_read_passages_in_it(engine, pipeline):
    search = FoldedSearch(engine, pipeline.scheme, "_dedup")
    options = {"explain": {"passages": True}, "members": {"size": 5}}
    for shown in (True, ["body"]):
        page = search.search("site", {"_source": shown, "ext": {"dedup": options}})
        ((member,),) = (one["members"] for one in page["dedup"]["explain"])
        _check_whole_text(member["passages"])


def test_the_search_page_reads_passages_in_it(engine, pipeline):
    with closing(_opened(engine, pipeline)) as site:
        shown = search_json(Shared(site), PageParameters({"q": "for"}, PARAMETERS))
    ((member,),) = (one["members"] for one in shown["answer"]["after"])
    (passage,) = member["passages"]
    assert passage["words"] == len(TEXT.split())
    assert not any(piece.marked for side in ("shown", "member") for piece in passage[side]["pieces"])


@pytest.mark.parametrize("language", ["ru", "uk"])
def test_texts_on_the_compare_page_are_read_in_the_language_of_all(tmp_path, language):
    step = {"fields": ["body"], "target_field": "_dedup", "language": language}
    scheme = make_scheme(codes=["ru", "uk", "any"])
    pipeline = Pipeline.from_json({"processors": [{"supershingle": step}]}, scheme)
    both = "вода рука нога книга река коза трава гора рыба корова"
    given = PageParameters({"text_a": both, "text_b": both}, compare_page.PARAMETERS)
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as engine:
        answer = compare_page.compare_json(Shared(_opened(engine, pipeline)), given)["answer"]
    assert [side["lang"] for side in answer["sides"]] == [language] * 2


def test_a_gate_reads_passages_in_it(engine, pipeline):
    with Gate(engine, "site", pipeline=pipeline) as gate:
        document = {"body": ENDINGS, "lang": "en", "written": {"in": "plain"}}
        with pytest.raises(Refused) as refused:
            gate.add(document)
        _check_whole_text(gate.passages(document, refused.value.like))


def _opened(engine: EmbeddedEngine, pipeline: Pipeline) -> FoldedIndex:
    site = FoldedIndex(engine, "site", pipeline.recipe("_dedup"), owns_engine=False)
    # The language of these tests is not installed.
    vars(site)["pipeline"] = pipeline
    return site


def _check_whole_text(passages: list[JSON]) -> None:
    assert [one["equal_tokens"] for one in passages] == [len(TEXT.split())]
    assert not any(one[side]["differing"] for one in passages for side in ("shown", "member"))
