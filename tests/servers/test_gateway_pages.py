"""The pages behind the gateway: those of the open index, with the credentials of whoever is let in."""

import json
import subprocess
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from support.drop_in import MAPPINGS
from support.gateway import RawUpstream, running_gateway
from support.pages import check_page, getting, served

import shinglefold
from shinglefold.examples import articles
from shinglefold.gateway.pages import pages_app

pytest.importorskip("uvicorn")

pytestmark = pytest.mark.newest

ROOT = "/_shinglefold/pages"
#: Pages by their address after that of the index, and their parameters.
PAGES = {
    "search": ("", {"q": "мост"}),
    "folded": ("", {"q": "ремонт моста", "size": "3", "representative": "longest"}),
    "groups": ("/groups", {"most": "2"}),
    "compare": ("/compare", {"a": "ru-bridge-repair-1", "b": "ru-bridge-repair-2"}),
    "adviser": ("/adviser", {"resemblance": ".7"}),
    "examined": ("/recipe", {"examine": "1"}),
    "a missing document": ("/compare", {"a": "ru-bridge-repair-1", "b": "x"}),
    "an unknown parameter": ("/recipe", {"x": "y"}),
}


@pytest.fixture(scope="module")
def site(server, shared_index):
    name, bare = shared_index(MAPPINGS), shared_index(MAPPINGS)
    languages = ["en", "ru", "uk", "zh"]
    shinglefold.setup(server.url, name, text=["title", "body"], languages=languages, groups=True)
    with closing(shinglefold.open(server.url, name)) as opened:
        assert opened.index(articles()).indexed > 50
        opened.engine.refresh(name)
        with served(pages_app(opened)) as get:
            yield SimpleNamespace(name=name, bare=bare, get=get)


@pytest.fixture(scope="module")
def get(server, tmp_path_factory):
    log = tmp_path_factory.mktemp("gateway") / "log"
    with running_gateway(log, server.url, options=("--pages", "--workers", "1")) as gateway:
        yield getting(gateway.port)
        assert gateway.stop() == 0
        assert log.read_text() == ""


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_that_of_the_open_index(site, get, name):
    path, parameters = PAGES[name]
    status, _, text = get(f"{ROOT}/{site.name}{path}", {**parameters, "format": "json"})
    expected = site.get(path or "/", {**parameters, "format": "json"})
    found, own = json.loads(text), json.loads(expected[2])
    for page in (found, own):
        page.get("report", {}).pop("made_at", None)
        # They name the address of the engine, each in its own way.
        for told in (page, page.get("diagnosis") or {}, page.get("advised") or {}):
            told.pop("commands", None)
            told.pop("doctor", None)
            told.pop("seconds", None)
    assert (status, found) == (expected[0], own)
    # A browser finds its way, in the language that it chose.
    status, headers, text = get(f"{ROOT}/{site.name}{path}", {**parameters, "lang": "uk"})
    assert (status, headers["content-type"]) == (expected[0], "text/html; charset=utf-8")
    links = {one.partition("#")[0] for one in check_page(text).values("a", "href") if one.startswith("/")}
    assert all(one.startswith(f"{ROOT}/") for one in links)
    if name == "folded":
        followed = [one for one in links if "/compare?" in one or "q=" not in one]
        assert len(followed) > 8
        assert {get(one)[0] for one in followed} == {200}


def test_the_indices_that_were_set_up_are_listed(site, get):
    for path in (ROOT, f"{ROOT}/"):
        listed = json.loads(get(path, accept="application/json")[2])["indices"]
        assert site.name in listed
        assert site.bare not in listed
        status, _, text = get(path)
        assert status == 200
        assert f"{ROOT}/{site.name}" in check_page(text).values("a", "href")
    status, headers, _ = get(f"{ROOT}/", {"index": " news-*/?#é ", "lang": "zh"})
    assert (status, headers["location"]) == (303, f"{ROOT}/{quote('news-*/?#é', safe='')}?lang=zh")


def test_what_is_missing_has_a_remedy(site, server, get):
    for name, expected in ((site.bare, 400), ("shinglefold-absent", 404), ("shinglefold-absent-*", 404)):
        status, _, text = get(f"{ROOT}/{name}/recipe", accept="application/json")
        message = json.loads(text)["error"]["message"]
        assert (status, "shinglefold setup" in message) == (expected, True), message
        assert f"--engine {server.url}" in message
        assert "`" not in message
        check_page(get(f"{ROOT}/{name}")[2])
    for path in ("/nothing", "/%2e%2e/metrics", "/_static/pages.html"):
        assert get(f"{ROOT}/{site.name}{path}")[0] == 404


def test_pages_are_off_unless_asked_for_and_behind_the_guard(site, server, tmp_path):
    token = ("--admin-token", "sésame")
    log, own = tmp_path / "log", ("--workers", "1")
    with running_gateway(log, server.url, options=own) as gateway:
        assert getting(gateway.port)(f"{ROOT}/{site.name}")[0] == 404
    with running_gateway(log, server.url, options=(*own, "--pages", *token)) as gateway:
        get = getting(gateway.port)
        assert get(f"{ROOT}/{site.name}")[0] == 401
        given = {"x_shinglefold_token": "sésame".encode()}
        assert get(f"{ROOT}/{site.name}", host="search.example.org", **given)[0] == 200
        assert get(f"{ROOT}/{site.name}", sec_fetch_site="cross-site", **given)[0] == 403
    with running_gateway(log, server.url, options=(*own, "--pages")) as gateway:
        assert getting(gateway.port)(f"{ROOT}/{site.name}", host="evil.example")[0] == 421
    command = [gateway.process.args[0], "gateway", "--upstream", server.url, "--pages"]
    command += ["--listen", "0.0.0.0:0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert "--admin-token" in refused.stderr


def test_headers_of_browsers_stay_here_and_credentials_go_on(tmp_path):
    """The engine sees who asks, and not what a browser says about itself."""
    upstream = RawUpstream()
    options = ("--workers", "1", "--pages", "--admin-token", "sesame")
    try:
        with running_gateway(tmp_path / "log", upstream.url, options=options) as gateway:
            own = {"x_shinglefold_token": "sesame", "authorization": "Basic eDp5", "x_proxy_user": "me"}
            browser = {"origin": "http://127.0.0.1", "referer": "http://x", "sec_fetch_site": "same-origin"}
            getting(gateway.port)(f"{ROOT}/news", **own, **browser, user_agent="a browser")
            getting(gateway.port)(f"{ROOT}/news", authorization="Bearer sesame")
    finally:
        upstream.close()
    heads = [head.decode("latin-1").lower() for head in upstream.heads]
    assert len(heads) >= 3
    first = [head for head in heads if "basic edp5" in head]
    assert first
    assert all("x-proxy-user: me" in head for head in first)
    for told in ("sesame", "origin:", "referer:", "sec-fetch", "a browser", "text/html"):
        assert not [head for head in heads if told in head], told
