"""Bulks are read as engines read them: ids of any kind, empty lines, and what they refuse."""

import warnings
from contextlib import nullcontext

import pytest
from support.interceptor import Script, intercept, with_note

from shinglefold.errors import EngineUnavailable
from shinglefold.gateway.bulks.items import read_items
from shinglefold.gateway.rest import Operation, RestRequest, RestResponse, Send
from shinglefold.rerank.engine_calls import Call

#: The action lines of a bulk, and the ids, indices and routings that the engine reads in them.
NAMED = {
    b'{"index": {"_id": 1}}': ("site", "1", None),
    b'{"index": {"_id": 1.0}}': ("site", "1.0", None),
    b'{"index": {"_id": 1e2}}': ("site", "1e2", None),
    b'{"index": {"_id": -0}}': ("site", "-0", None),
    b'{"index": {"_id": 123456789012345678901234567890}}': ("site", "123456789012345678901234567890", None),
    b'{"index": {"_id": true}}': ("site", "true", None),
    b'{"index": {"_id": false, "routing": 1.50}}': ("site", "false", "1.50"),
    b'{"index": {"_id": null, "routing": null, "_index": null}}': ("site", None, None),
    b'{"index": {"_index": 12, "_id": "a", "routing": true}}': ("12", "a", "true"),
    b'{"update": {"_id": 7, "if_seq_no": 5}}': ("site", "7", None),
}
#: Those that the engine refuses, or reads in another way than Python does.
NOT_NAMED = (
    *(b'{"index": {"_id": [1]}}', b'{"index": {"_id": {}}}', b'{"index": {"_id": NaN}}'),
    *(b'{"index": {"_index": []}}', b'{"index": null}', b'{"index": 0}', b'{"index": []}', b'{"index": ""}'),
    *(b'{"index": false}', b"[1]", b"1", b"{}", b'{"index": {}, "index": {}}', b'{"INDEX": {}}'),
    # Half of a surrogate pair is in no path.
    *(b'{"index": {"_index": "\\ud800"}}', b'{"update": {"_id": "\\ud800"}}'),
    b'{"index": {"routing": "\\udc00"}}',
    *(b'{"index": {"_id": "1", "_id": "2"}}', b'{"index": {}, "create": {}}', b'{"index": {"_id": "1"}} x'),
)  # fmt: skip


@pytest.mark.parametrize("line", NAMED)
def test_ids_in_bulks_are_those_that_the_engine_reads(line):
    (item,) = read_items(Operation("bulk", "site"), RestRequest("POST", "/", body=line + b"\n{}\n"))
    assert (item.name, item.id, item.route, item.lines) == (*NAMED[line], [line, b"{}"])


@pytest.mark.long(every=5)
@pytest.mark.parametrize("line", NOT_NAMED)
def test_actions_that_the_engine_refuses_pass_whole(site, line):
    with pytest.warns(UserWarning, match="can't be read"):
        assert intercept(site, Script(site), "/site/_bulk", line + b'\n{"title": "a"}\n') is None


def test_an_empty_line_in_place_of_a_document_is_not_the_next_action(site):
    sent = []

    def answer(request):
        if isinstance(request, Send):
            sent.append(request.request.body)
            return RestResponse(200, {"items": [{"index": {"status": 400}}, {"delete": {"status": 200}}]})
        return Script(site)(request)

    body = b'\n{"index": {"_id": "1"}}\n\n \n{"delete": {"_id": "2"}}\n\n'
    intercept(site, answer, "/site/_bulk", body)
    assert sent == [b'{"index": {"_id": "1"}}\n\n{"delete": {"_id": "2"}}\n']


def test_a_document_that_only_the_engine_can_read_is_told(site):
    answer = Script(site, 201)

    def stores(request):
        return RestResponse(201, {"items": [{"index": {}}]}) if isinstance(request, Send) else answer(request)

    text = b'{"title": "a" /* a comment, which engines take */}'
    for path, body in (("/site/_doc/1", text), ("/site/_bulk", b'{"index": {}}\n' + text + b"\n")):
        with pytest.warns(UserWarning, match="not JSON: if the engine takes it, it has no fingerprint"):
            intercept(site, stores, path, body)


#: Parameters of a bulk, its status and answer, and what is said of a document that only the engine can read.
ANSWERS = {
    "whole": ({}, 200, {"items": [{"index": {}}]}, "told"),
    "whole, with an error": ({}, 200, {"items": [{"index": {"error": {}}}]}, ""),
    "filtered": ({"filter_path": "took"}, 200, {"took": 1}, "told"),
    "YAML": ({"format": "yaml"}, 200, "---\n", ""),
    "filtered YAML": ({"format": "yaml", "filter_path": "took"}, 200, "---\n", ""),
    "JSON instead of YAML": ({"format": "yaml"}, 200, {"items": [{"index": {}}]}, "told"),
    "refused": ({}, 400, {"error": {}}, ""),
    "of another server": ({}, 200, {"took": 1}, "raised"),
    "a page": ({}, 200, "<html>", "raised"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_to_a_bulk_is_read_where_it_can_be(site, name):
    parameters, status, body, said = ANSWERS[name]

    def answer(request):
        return RestResponse(status, body) if isinstance(request, Send) else Script(site)(request)

    bulk = b'{"index": {}}\n{"title": "a" /* a comment, which engines take */}\n'
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(EngineUnavailable) if said == "raised" else nullcontext():
            assert intercept(site, answer, "/site/_bulk", bulk, **parameters).body == body
    told = ["not JSON" in str(one.message) for one in caught if "numbers groups" not in str(one.message)]
    assert told == [True] * (said == "told")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("gated", [False, True])
def test_a_key_twice_goes_to_the_engine_which_refuses_it(site, gated):
    """Where the gateway writes a document anew, or a gate decides, one of the two would be lost."""
    sent = []

    def answer(request):
        if isinstance(request, Call) and request.method == "all_mappings":
            return {"site": with_note(site, gate="refuse" if gated else None)}
        if isinstance(request, Send):
            sent.append(request.request.body)
            refused = {"status": 400, "error": {"type": "x"}}
            return RestResponse(200, {"items": [{"index": refused}, {"update": refused}]})
        return Script(site)(request)

    twice = b'{"title": "a", "_dedup": {"digest": "own"}, "title": "b"}'
    update = b'{"doc": {"title": "a", "title": "b"}}'
    body = b'{"index": {"_id": "1"}}\n' + twice + b'\n{"update": {"_id": "2"}}\n' + update + b"\n"
    found = intercept(site, answer, "/site/_bulk", body)
    assert [one["status"] for item in found.body["items"] for one in item.values()] == [400, 400]
    assert sent == [body]
