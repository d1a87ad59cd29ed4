"""Searches that are not folded: what the engine is sent in their place, and what its answer becomes."""

import json

import pytest
from support.interceptor import Script, intercept, lines, with_note

from shinglefold.api.index_options import IndexOptions
from shinglefold.errors import ConfigError
from shinglefold.gateway import Interceptor
from shinglefold.gateway.rest import RestRequest, RestResponse, Send
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.runtime.sans_io import run
from shinglefold.settings import Settings

PAGE = {"took": 3, "hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}}
ERROR = {"error": {"type": "x", "reason": "no"}, "status": 400}
REFUSED = {"dedup": False, "an option": {"fold": False}}


class Answers(Script):
    """An engine that answers each search that it is sent alike; its index may note something else."""

    def __init__(self, site, page=PAGE, status=200, **note):
        super().__init__(site)
        self.page, self.status, self.note = page, status, note

    def __call__(self, request):
        if isinstance(request, Call) and request.method == "all_mappings" and self.note:
            return {"site": with_note(self.site, **self.note)}
        if not isinstance(request, Send):
            return super().__call__(request)
        self.sent.append(request.request)
        if not request.request.path.endswith("_msearch"):
            return RestResponse(self.status, self.page)
        several = [self.page] * (request.request.body.count(b"\n") // 2)
        filtered = "filter_path" in request.request.parameters
        return RestResponse(self.status, {"took": 3} if filtered else {"took": 3, "responses": several})


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_a_search_that_wants_no_folding_is_sent_without_saying_so(site, name, always):
    for own, sent in (
        ({}, None),
        ({"size": 1, "ext": {"dedup": 1}}, {"size": 1}),
        ({"ext": {"dedup": 1, "x": 2}}, {"ext": {"x": 2}}),
    ):
        answer = Answers(site)
        options = False if name == "dedup" else {"fold": False}
        body = {**own, "ext": {**own.get("ext", {}), "dedup": options}}
        found = intercept(site, answer, "/site/_search", body, always=always, preference="x")
        assert (found.status, found.body) == (200, PAGE)
        assert [(one.body, one.parameters) for one in answer.sent] == [(sent, {"preference": "x"})]


#: Searches that can't be folded; the client asks to fold each search.
TROUBLES = {
    "a scope that is no field": ({"dedup": {"scope": "absent"}}, {}),
    "a seal without its key": ({}, {"sealed": "x"}),
}


def ask(site, answer, body, path="/site/_search", parameters=None, **options):
    options = IndexOptions.parse(**options)
    made = Interceptor(site.engine, FoldedSearch, options, Settings(), always=True)
    return run(made.steps(RestRequest("POST", path, parameters or {}, {}, body)), answer)


@pytest.mark.parametrize("name", TROUBLES)
def test_a_page_that_cannot_be_folded_is_the_engines_own_or_an_error(site, name):
    options, note = TROUBLES[name]
    found = ask(site, Answers(site, **note), {"size": 1}, **options)
    assert found.body["dedup"]["mode"] == "unfolded"
    assert found.body["dedup"]["mode_reason"]
    refused = ask(site, Answers(site, ERROR, 400, **note), {"size": 1}, **options)
    assert (refused.status, refused.body) == (400, ERROR)
    with pytest.raises(ConfigError):
        ask(site, Answers(site, **note), {"size": 1}, on_trouble="raise", **options)
    several = lines({"index": "site"}, {"size": 1}, {"index": "site"}, {"ext": {"dedup": False}})
    found = ask(site, Answers(site, **note), several, "/_msearch", **options).body["responses"]
    assert ["dedup" in one for one in found] == [True, False]
    found = ask(site, Answers(site, ERROR, **note), several, "/_msearch", **options).body["responses"]
    assert found == [ERROR, ERROR]


def test_a_search_that_asks_for_what_is_wrong_is_refused(site):
    body = {"ext": {"dedup": {"scope": "absent"}}}
    with pytest.raises(ConfigError, match="absent"):
        intercept(site, Answers(site), "/site/_search", body)
    several = lines({"index": "site"}, body, {"index": "site"}, {"size": 1})
    found = intercept(site, Answers(site), "/_msearch", several).body
    assert [one.get("status") for one in found["responses"]] == [400, None]
    assert "absent" in found["responses"][0]["error"]["reason"]
    assert found["took"] == 3


def test_one_of_several_that_the_engine_refuses_is_answered_by_the_engine(site):
    refused = {"ext": {"dedup": {}}, "profile": True}
    several = lines({"index": "site"}, {"ext": {"dedup": {}}}, {"index": "site"}, refused)
    answer = Answers(site)
    folded, own = intercept(site, answer, "/_msearch", several).body["responses"]
    assert [folded["dedup"]["mode"], own["dedup"]["mode"]] == ["window", "unfolded"]
    assert [json.loads(line) for line in answer.sent[0].body.splitlines()] == [
        {"index": "site"},
        {"profile": True},
    ]
    found = intercept(site, Answers(site, ERROR), "/_msearch", several).body["responses"]
    assert [found[0]["status"], found[1]] == [200, ERROR]
    # Where it refuses all of them, so is the whole.
    found = intercept(site, Answers(site, PAGE, 429), "/_msearch", several)
    assert (found.status, "took" in found.body) == (429, True)


def test_answers_that_are_put_together_are_not_filtered(site):
    several = lines({"index": "site"}, {"ext": {"dedup": {}}}, {"index": "site"}, {"size": 1})
    found = intercept(site, Answers(site), "/_msearch", several, filter_path="took").body
    assert [one.get("status") for one in found["responses"]] == [400, None]
    assert "filter_path" in json.dumps(found)


def test_the_header_of_one_search_goes_before_the_parameters_of_all(site):
    several = lines({"index": "site", "routing": "own"}, {"size": 1, "ext": {"dedup": {}}})
    asked = []

    class Routed(Answers):
        def __call__(self, request):
            if isinstance(request, Call) and "routing" in repr(request):
                asked.append(repr(request))
            return super().__call__(request)

    intercept(site, Routed(site), "/_msearch", several, routing="of-all")
    assert asked
    assert all("own" in one and "of-all" not in one for one in asked)


def test_a_source_parameter_is_left_to_the_engine(site):
    for path in ("/site/_search", "/_search"):
        assert intercept(site, Answers(site), path, None, always=True, source="{}") is None


def test_an_index_without_a_recipe_is_told_where_folding_is_asked_for(site):
    class Bare(Answers):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {"site": {}}
            return super().__call__(request)

    assert intercept(site, Bare(site), "/site/_search", {"size": 1}, always=True) is None
    found = intercept(site, Bare(site), "/site/_search", {"size": 1, "ext": {"dedup": {}}}).body
    assert found["dedup"]["mode"]
    assert len(found["hits"]["hits"]) == 1


def test_folding_follows_the_recipe_and_the_tiebreaker(site):
    """The first caller may not be allowed to read the version, and an index may be set up again."""
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    searches = interceptor._handlers["search"].__self__
    answer = Answers(site, fields=["body"])

    def folding():
        interceptor.indices._by_name.drop("site", {})
        return run(searches._folding_of("site", {}), answer)

    first = folding()
    assert folding() is first
    searches._tiebreaker = "_seq_no"
    second = folding()
    assert (first.tiebreaker, second.tiebreaker, second.recipe) == (None, "_seq_no", first.recipe)
    answer.note = {"fields": ["title"]}
    assert folding().recipe.fields == ("title",)


def test_another_process_continues_with_a_cursor(site):
    body = {"query": {"match_all": {}}, "size": 3}
    first = intercept(site, Answers(site), "/site/_search", {**body, "ext": {"dedup": {"cursor": True}}}).body
    options = {"cursor": first["dedup"]["cursor"]}
    second = intercept(site, Answers(site), "/site/_search", {**body, "ext": {"dedup": options}}).body
    whole = site.search({**body, "size": 6})["hits"]["hits"]
    assert [hit["_id"] for page in (first, second) for hit in page["hits"]["hits"]] == [
        hit["_id"] for hit in whole
    ]
