"""Searches by templates are folded as the searches in them, if the engine renders these for the caller."""

import json

import pytest
from support.interceptor import Script, intercept, lines

from shinglefold.errors import UnsupportedQuery
from shinglefold.gateway.rest import RestResponse, Send
from shinglefold.rerank.engine_calls import Call

SEARCH = {"query": {"match": {"title": "мост"}}, "size": 3}
TEMPLATE = {"id": "news", "params": {"words": "мост"}}
ASKED = {**TEMPLATE, "ext": {"dedup": {}}}
ERROR = {"error": {"type": "x", "reason": "no"}}


def values(body):
    """Return the JSON of each line of a body."""
    return [json.loads(line) for line in body.splitlines()] if isinstance(body, bytes) else [body]


class Renders(Script):
    """An engine that renders every template as one search, or refuses to by a status."""

    def __init__(self, site, search=None, status=200):
        super().__init__(site)
        self.search, self.status = SEARCH if search is None else search, status

    def __call__(self, request):
        if not isinstance(request, Send):
            return super().__call__(request)
        sent = request.request
        self.sent.append((sent.method, sent.path, sent.parameters, values(sent.body)))
        if sent.path == "/_render/template":
            found = {"template_output": self.search} if self.status == 200 else ERROR
            return RestResponse(self.status, found)
        hits = [{"_index": "site", "_id": str(at)} for at in range(3)]
        page = {"took": 1, "hits": {"total": {"value": 9, "relation": "eq"}, "hits": hits}}
        if "_msearch" in sent.path:
            return RestResponse(200, {"took": 1, "responses": [page] * (sent.body.count(b"\n") // 2)})
        return RestResponse(400, ERROR) if self.status == 400 else RestResponse(200, page)


def rendering(**wanted):
    return ("POST", "/_render/template", {}, [wanted])


def fold_of(site, search):
    return {**intercept(site, Script(site), "/site/_search", search).body, "took": 0}


def test_a_template_is_answered_as_the_search_in_it(site):
    answer = Renders(site)
    found = intercept(site, answer, "/site/_search/template", ASKED, preference="x").body
    assert {**found, "took": 0} == fold_of(site, {**SEARCH, "ext": ASKED["ext"]})
    unasked = intercept(site, answer, "/site/_search/template", TEMPLATE, always=True).body
    assert unasked["dedup"]["hits_total"] == found["hits"]["total"]
    # Its parameters are those of the search, and not of the request that renders it.
    assert answer.sent == [rendering(**TEMPLATE)] * 2


def test_options_in_a_template_and_beside_it_hold_for_its_search(site):
    search = {**SEARCH, "ext": {"dedup": {"members": 2}}}
    own = {**TEMPLATE, "ext": {"dedup": {"members": 1}, "own": 2}}
    found = intercept(site, Renders(site, search), "/site/_search/template", own).body
    assert {**found, "took": 0} == fold_of(site, {**SEARCH, "ext": {"dedup": {"members": 1}}})
    for name in ("explain", "profile"):
        with pytest.raises(UnsupportedQuery, match=f"option of search '{name}'"):
            intercept(site, Renders(site), "/site/_search/template", {**ASKED, name: True})
    with pytest.raises(UnsupportedQuery, match="option of search 'ext'"):
        intercept(site, Renders(site, {**SEARCH, "ext": {"other": 1}}), "/site/_search/template", ASKED)
    # Options that stand only in the source of a template are found, as those of a template that is stored.
    given = {"source": json.dumps(search)}
    assert {**intercept(site, Renders(site, search), "/site/_search/template", given).body, "took": 0} == (
        fold_of(site, search)
    )


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_template_that_is_not_rendered_is_searched_by_unfolded(site, status):
    answer = Renders(site, status=status)
    told = f"the engine does not render the template (status {status})"
    page = intercept(site, answer, "/site/_search/template", {**ASKED, "ext": {"dedup": {}, "own": 2}}).body
    assert (page["dedup"]["mode"], page["dedup"]["mode_reason"]) == ("unfolded", told)
    method, path, parameters, body = answer.sent[-1]
    assert (method, path, parameters) == ("POST", "/site/_search/template", {})
    assert body == [{**TEMPLATE, "ext": {"own": 2}}]
    assert intercept(site, answer, "/site/_search/template", TEMPLATE, always=True) is None
    several = lines({"index": "site"}, TEMPLATE, {"index": "site"}, ASKED)
    plain, found = intercept(site, answer, "/_msearch/template", several).body["responses"]
    if status in (401, 403):
        assert "dedup" not in plain
        assert found["dedup"]["mode_reason"] == told
        # The size in the template is not known.
        assert found["dedup"]["stopped_by"] == page["dedup"]["stopped_by"] == "page_full"
        assert answer.sent[-1][3] == [{"index": "site"}, TEMPLATE] * 2
    else:
        assert plain == found == {**ERROR, "status": status}


def test_a_template_that_the_engine_refuses_gets_its_error(site):
    answer = Renders(site, status=400)
    found = intercept(site, answer, "/site/_search/template", ASKED)
    assert (found.status, found.body) == (400, ERROR)


def test_templates_that_the_engine_has_to_read_pass(site):
    answer = Renders(site)
    assert intercept(site, answer, "/site/_search/template", ASKED, source="{}") is None
    assert intercept(site, answer, "/site/_search/template", TEMPLATE) is None
    assert intercept(site, answer, "/_msearch/template", lines({"index": "site"}, TEMPLATE)) is None

    # A point in time has its indices itself, which only a search that asks for folding may need.
    class Known(Renders):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {"site": site.engine.mappings("site")}
            return super().__call__(request)

    under_pit = Known(site, {"pit": {"id": "x"}})
    assert intercept(site, under_pit, "/_msearch/template", lines({}, TEMPLATE), always=True) is None
    assert len(under_pit.sent) == 1


@pytest.mark.parametrize("ext", ["text", 5, [1], ["dedup"]])
def test_an_ext_in_a_template_that_is_no_object_is_refused_by_the_engine(site, ext):
    answer = Renders(site, {**SEARCH, "ext": ext})
    intercept(site, answer, "/site/_search/template", ASKED)
    assert answer.sent[-1][1:] == ("/site/_search/template", {}, [TEMPLATE])


def test_options_in_a_source_are_found_where_no_index_has_a_recipe(site):
    class Bare(Renders):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {"site": {}}
            return super().__call__(request)

    for search, renders in (({**SEARCH, "ext": {"dedup": {}}}, True), (SEARCH, False)):
        answer = Bare(site, search)
        found = intercept(site, answer, "/site/_search/template", {"source": json.dumps(search)})
        assert (found is not None, bool(answer.sent)) == (renders, renders)


def test_several_templates_are_sent_as_what_they_are(site):
    own = {**SEARCH, "collapse": {"field": "host"}}

    class Some(Renders):
        def __call__(self, request):
            self.search = SEARCH if "news" in str(request) else own
            return super().__call__(request)

    answer, other = Some(site), {"id": "other"}
    given = [{"index": "site"}, ASKED, {"index": "site"}, {**other, "ext": {"dedup": False}}, {}, other]
    found = intercept(site, answer, "/site/_msearch/template", lines(*given)).body
    assert ["dedup" in one for one in found["responses"]] == [True, False, False]
    assert [one.get("status") for one in found["responses"]] == [200, None, None]
    sent = [one for one in answer.sent if one[1] != "/_render/template"]
    # Of a search that is not folded, the template goes to the engine.
    assert sent == [
        ("POST", "/site/_msearch/template", {}, [{}, other]),
        ("POST", "/site/_msearch", {}, [{"index": "site"}, own]),
    ]
    # An answer can't be put together of filtered ones.
    for filtered in (given[2:], given[4:] + given[2:4]):
        answer.sent.clear()
        found = intercept(site, answer, "/site/_msearch/template", lines(*filtered), filter_path="took").body
        assert len(found["responses"]) == 2
        assert all(not one[2] for one in answer.sent)
