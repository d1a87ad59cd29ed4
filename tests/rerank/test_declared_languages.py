"""The language that documents declare is read from the field that the recipe of the index names."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON
from shinglefold.contracts.language import CanonOptions, Language
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.gateway.pages.documents import document_json
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.recipe import with_passages
from shinglefold.model.scheme import LanguageRef
from shinglefold.registry import load_languages, make_scheme
from shinglefold.rerank.explanation import explain_pair
from shinglefold.rerank.matching import MatchOptions, MatchSearch

TEXT = "The bridge over the river closes for repairs in May and buses take another road until June"


class Plain(Language):
    """A language whose words nothing but the declaration of a document tells from English."""

    code, scripts, precedence = "plain", frozenset({"Latn"}), 50

    def canonical(self, word):
        return f"plain-{word}"


@pytest.fixture(scope="module")
def canonicalizer() -> Canonicalizer:
    known = make_scheme(codes=["en", "any"]).languages
    loaded = [*load_languages(known), Plain(CanonOptions())]
    return Canonicalizer((*known, LanguageRef("plain", "1")), loaded=loaded)


@pytest.fixture(scope="module", params=[{"language_field": "written.in"}, {"language": "plain"}], ids=str)
def pipeline(request: pytest.FixtureRequest, canonicalizer: Canonicalizer) -> Pipeline:
    scheme = replace(make_scheme(codes=["en", "any"]), languages=canonicalizer.references)
    step = {"fields": ["body"], "target_field": "_dedup", **request.param}
    return Pipeline.from_json(
        with_passages({"processors": [{"supershingle": step}]}, "_dedup"), scheme, canonicalizer
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory, canonicalizer, pipeline) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("languages"), canonicalizer) as opened:
        opened.create_index("site", recipe_mappings(pipeline.recipe("_dedup")), {})
        made = pipeline.run({"body": TEXT, "lang": "en", "written": {"in": "plain"}} for _ in range(2))
        actions = (
            {"_index": "site", "_id": f"{n}", "_source": one.document} for n, one in zip(count(), made)
        )
        assert not opened.bulk(actions).failures
        opened.refresh("site")
        yield opened


@pytest.mark.parametrize("source", [False, True])
def test_passages_are_found_in_it(engine, canonicalizer, source):
    page = MatchSearch(engine, canonicalizer, language="plain").find(
        "site", TEXT, MatchOptions(source=source)
    )
    assert [(one.id, one.share) for one in page.matches] == [("0", 1.0), ("1", 1.0)]
    assert page.unreadable == 0


def test_explanations_and_pages_read_it(engine, canonicalizer, pipeline):
    hits: list[JSON] = engine.search("site", {"query": {"match_all": {}}, "sort": ["_doc"]})["hits"]["hits"]
    recipe = pipeline.recipe("_dedup")
    found = explain_pair(
        (hits[0], hits[1]), pipeline.scheme, canonicalizer, "_dedup", ("body",),
        mappings=[recipe_mappings(recipe)],
    )  # fmt: skip
    assert (found.facts["a"]["lang"], found.facts["folds"], len(found.passages)) == ("plain", True, 1)
    declared = canonicalizer.placed(TEXT, "plain").hashes.tolist()
    assert [one.hashes.tolist() for one in found.tokens] == [declared] * 2
    assert document_json(hits[0], recipe, "site")["lang"] == "plain"
