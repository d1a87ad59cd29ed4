"""The gateway in front of a server that asks who is there: each caller sees what the server shows them."""

import base64
import json
import re
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from support.gateway import Gateway, running_gateway
from support.servers.admin import send
from support.servers.security import User
from support.servers.server import add_alias

from shinglefold.model.recipe import META_KEY

pytest.importorskip("uvicorn")

INDEX = "public-pages"
FOLDED = {"query": {"match_all": {}}, "size": 50, "ext": {"dedup": {"members": 10}}}


@pytest.fixture(scope="module")
def gateway(secured, tmp_path_factory) -> Iterator[Gateway]:
    log = tmp_path_factory.mktemp("gateway") / "log"
    options = ("--ca-certificate", str(secured.certificates.authority), "--workers", "1", "--pages")
    with running_gateway(log, secured.url, options=options) as gateway:
        yield gateway
        text = log.read_text()
        assert "mot-de-passe" not in text
        assert "Basic" not in text


def proof(user: User) -> str:
    return f"Basic {base64.b64encode(f'{user.name}:{user.password}'.encode()).decode()}"


def ask(url: str, user: User | None, body: Any, context: ssl.SSLContext | None = None) -> tuple[int, Any]:
    sent = {} if user is None else {"authorization": proof(user)}
    status, _, text = send(url, "POST", body, context=context, **sent)
    return status, json.loads(text) if text.startswith(b"{") else text.decode()


@pytest.fixture
def seen(site, secured, users):
    """What the server itself shows a user: its ids, and the names of fields."""
    context = secured.certificates.context()

    def of(name: str) -> tuple[set[str], set[str]]:
        url = f"{secured.url}/{INDEX}/_search"
        _, answer = ask(url, users[name], {"size": 1000}, context)
        hits = answer["hits"]["hits"]
        return {hit["_id"] for hit in hits}, {field for hit in hits for field in hit["_source"]}

    return of


@pytest.mark.parametrize("name", ["partly", "blinkered", "reader", "chief"])
def test_folds_and_members_show_what_the_server_shows(gateway, users, seen, name):
    ids, fields = seen(name)
    # Others, who see more, were here before: some may not read the recipe, which is kept for ten seconds.
    for turn in range(4):
        for other in ("chief", name):
            status, page = ask(f"{gateway.url}/{INDEX}/_search", users[other], FOLDED)
            assert status == 200
        if turn and page["dedup"]["mode"] != "unfolded":
            break
    assert page["dedup"]["mode"] != "unfolded", page["dedup"]
    shown = [
        member
        for hit in page["hits"]["hits"]
        for member in (hit, *hit["inner_hits"]["duplicates"]["hits"]["hits"])
    ]
    assert {hit["_id"] for hit in shown} == ids
    assert {field for hit in shown for field in hit["_source"]} == fields


def test_refusals_are_the_servers_own(gateway, secured, site, users):
    context = secured.certificates.context()
    stranger = User("nobody", "wrong-password", "")
    for user, index, body in (
        (None, INDEX, FOLDED), (stranger, INDEX, FOLDED), (users["reader"], "secret-pages", FOLDED),
        (users["writer"], INDEX, FOLDED), (users["writer"], INDEX, {}), (stranger, INDEX, {}),
    ):  # fmt: skip
        bare = {name: value for name, value in body.items() if name != "ext"}
        status, answer = ask(f"{gateway.url}/{index}/_search", user, body)
        expected, told = ask(f"{secured.url}/{index}/_search", user, bare, context)
        assert status == expected
        assert status in (401, 403)
        assert type(answer) is type(told)
    for user, index in ((None, INDEX), (stranger, INDEX), (users["reader"], INDEX)):
        status, _ = ask(f"{gateway.url}/{index}/_doc", user, {"title": "Bridge"})
        assert status in (401, 403)


def test_an_index_whose_recipe_a_user_may_not_read_is_not_said_to_have_none(gateway, secured, site, users):
    """By an alias, as what is known of an index is known for all."""
    alias = f"{INDEX}-of-each-caller"
    secured.ask("PUT", f"/{INDEX}/_alias/{alias}")
    sign = f"{gateway.url}/_shinglefold/sign?index={alias}"
    documents = {"documents": [{"title": "Bridge"}]}
    assert ask(sign, users["chief"], documents)[0] == 200
    status, answer = ask(sign, users["reader"], documents)
    secured.ask("DELETE", f"/{INDEX}/_alias/{alias}")
    assert status == 403
    assert "indices:admin/mappings/get" in json.dumps(answer)


@pytest.fixture
def partial_patterns(secured):
    """A server that answers a pattern with those of its indices that a user may see."""

    def set_to(*, partial: bool) -> None:
        change = {"op": "add", "path": "/config/dynamic/do_not_fail_on_forbidden", "value": partial}
        secured.ask("PATCH", "/_plugins/_security/api/securityconfig", [change])

    set_to(partial=True)
    yield
    set_to(partial=False)


@pytest.mark.parametrize("first", ["chief", "examiner"])
def test_a_pattern_is_folded_by_what_each_caller_sees(gateway, secured, site, users, partial_patterns, first):
    """The examiner may read some of the indices, and not the mappings of all of them."""
    recipe = {META_KEY: {**site.engine.mappings(INDEX)["_meta"][META_KEY], "fold": True}}
    for index in (INDEX, "secret-pages"):
        secured.ask("PUT", f"/{index}/_mapping", {"_meta": recipe})
    add_alias(secured, "pages-of-all", INDEX, "secret-pages")
    body = {"query": {"match_all": {}}, "size": 50}
    options = ("--ca-certificate", str(secured.certificates.authority), "--workers", "1")
    with running_gateway(gateway.log.with_name("log-of-callers"), secured.url, options=options) as running:
        for name in ("*-pages", "_all", "pages-of-all", f"{INDEX},secret-p*", INDEX):
            for user in (first, "chief", "examiner", "chief", "examiner"):
                status, page = ask(f"{running.url}/{name}/_search", users[user], body)
                assert status == 200, page
                assert ("dedup" in page) is (user == "chief" or name == INDEX), (user, name)
                indices = {hit["_index"] for hit in page["hits"]["hits"]}
                assert indices <= {INDEX} or user == "chief"


def look(gateway: Gateway, user: User | None, path: str) -> tuple[int, str | None, Any]:
    """Status, challenge and JSON of a page."""
    sent = {} if user is None else {"authorization": proof(user)}
    status, headers, text = send(f"{gateway.url}/_shinglefold/pages/{path}", **sent)
    return status, headers.get("www-authenticate"), json.loads(text)


WORDS = quote("страница")


@pytest.mark.parametrize("name", ["partly", "blinkered", "chief"])
def test_pages_show_what_the_server_shows(gateway, users, seen, name):
    ids, fields = seen(name)
    for other in ("chief", name, "chief", name):
        status, _, page = look(gateway, users[other], f"{INDEX}?q={WORDS}&size=50&format=json")
        assert status == 200, page
        # What takes long is kept, and was made for another one just before.
        _, _, examined = look(gateway, users[other], f"{INDEX}/recipe?examine=1&format=json")
    answer = page["answer"]
    results = [one for hit in answer["after"] for one in (hit, *hit["members"])]
    shown = {one["document"]["id"] for one in (*answer["before"], *results)}
    assert shown <= ids
    assert answer["hits"]["value"] == len(ids)
    shown_fields = {one["shown"]["field"] for result in results for one in result.get("passages", ())}
    assert shown_fields <= fields
    told = examined.get("diagnosis") or examined["error"]
    if "documents" in told:
        assert told["documents"] == len(ids)
    assert INDEX in look(gateway, users[name], "?format=json")[2].get("indices", [INDEX])


@pytest.mark.parametrize("name", ["partly", "blinkered"])
def test_groups_and_comparisons_show_what_the_server_shows(gateway, secured, grouped, users, name):
    context = secured.certificates.context()
    hits = {}
    for user in ("chief", name):
        _, answer = ask(f"{secured.url}/{grouped}/_search", users[user], {"size": 1000}, context)
        hits[user] = {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}
    hidden_ids = hits["chief"].keys() - hits[name].keys()
    words = {word for one in hits["chief"].values() for word in one["body"].split()}
    shown = " ".join(str(value) for one in hits[name].values() for value in one.values())
    hidden_words = words - set(shown.split())
    assert hidden_ids if name == "partly" else hidden_words

    def told(path: str) -> tuple[int, str]:
        """The page of a user just after that of one who sees everything."""
        for user in ("chief", name):
            status, _, page = look(gateway, users[user], f"{grouped}{path}&format=json")
            assert user == name or status == 200, page
        text = json.dumps(page, ensure_ascii=False)
        assert not [id_ for id_ in hidden_ids if f'"{id_}"' in text and id_ not in path]
        assert not hidden_words & set(re.findall(r"\w+", text))
        return status, page

    status, page = told("/groups?most=100")
    assert status == 200, page
    assert page["report"]["documents"] == len(hits[name])
    listed = page["report"]["largest"]
    assert listed
    assert all(one["id"] in hits[name] for one in listed)
    # Copies of one page, by what the user sees of them.
    copies_of = {id_: id_.rpartition("-")[0] for id_ in hits["chief"]}
    seen = sorted(hits[name])
    pair = next((a, b) for a in seen for b in seen if a < b and copies_of[a] == copies_of[b])
    assert told(f"/compare?a={pair[0]}&b={pair[1]}")[0] == 200
    for id_ in sorted(hidden_ids)[:3]:
        assert told(f"/compare?a={pair[0]}&b={id_}")[0] == 404


def test_browsers_are_asked_for_what_the_server_asks_for(gateway, site, users):
    stranger = User("nobody", "wrong-password", "")
    for path in (f"{INDEX}?format=json", f"{INDEX}/recipe?format=json", "?format=json"):
        for user in (None, stranger):
            status, challenge, page = look(gateway, user, path)
            assert (status, challenge is not None and challenge.startswith("Basic")) == (401, True)
            assert page.keys() == {"index", "error"}
    for user in (users["writer"], users["reader"]):
        status, challenge, page = look(gateway, user, "secret-pages?format=json")
        assert (status, challenge, page.keys()) == (403, None, {"index", "error"})


@pytest.mark.parametrize("several", [False, True], ids=["one index", "several indices"])
def test_a_user_who_may_not_read_an_alias_is_told_what_that_costs(gateway, secured, site, users, several):
    """An alias says which of its indices takes writes, and the routing of its documents."""
    note, old, new = site.engine.mappings(INDEX), "public-old", "public-new"
    alias = "public-several" if several else "public-one"
    for name in (old, new):
        if site.engine.index_exists(name):
            site.engine.delete_index(name)
        site.engine.create_index(name, note, {"number_of_shards": 3, "number_of_replicas": 0})
    if several:
        add_alias(secured, alias, old)
    add_alias(secured, alias, new, is_write_index=True, index_routing="r")

    def write(name: str, method: str, path: str, body: Any) -> tuple[int, str]:
        who = {"authorization": proof(users[name])}
        status, headers, text = send(f"{gateway.url}/{alias}/{path}", method, body, **who)
        assert json.loads(text).get("errors", False) is False, text
        return status, headers.get("warning", "")

    for name in ("chief", "keeper"):
        unknown = several and name == "keeper"
        status, told = write(name, "PUT", "_doc/1", {"title": "Bridge"})
        assert (status < 300, f"may not read the alias '{alias}'" in told) == (True, unknown)
        for method, path, body in (
            ("POST", "_update/1", {"doc": {"title": "Bridge two"}}),
            ("POST", "_bulk", b'{"update": {"_id": "1"}}\n{"doc": {"title": "Bridge three"}}\n'),
        ):
            status, told = write(name, method, path, body)
            stale = f"the fingerprint of '1' in '{alias}' is that of its text before" in told
            assert (status, stale) == (200, unknown), told
        assert write(name, "POST", "_update/1", {"doc": {"published": 7}}) == (200, "")
