"""Who is let in to the pages, and where they are: hosts, tokens, pages elsewhere, prefixes, the command."""

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from http.client import HTTPConnection

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from support.pages import check_page, served

import shinglefold
from shinglefold.errors import EngineUnavailable
from shinglefold.gateway.pages import index_pages, pages_app
from shinglefold.gateway.pages.guard import POLICY
from shinglefold.gateway.pages.shared import Recent
from shinglefold.grouping.report import make_report

#: What browsers say about who asks for a page.
FETCHES = {
    "typed": {"sec_fetch_site": "none", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
    "a link of ours": {"sec_fetch_site": "same-origin", "sec_fetch_mode": "navigate"},
    "a link that somebody followed": {
        "sec_fetch_site": "cross-site",
        "sec_fetch_mode": "navigate",
        "sec_fetch_dest": "document",
        "sec_fetch_user": "?1",
    },
    "elsewhere, an image": {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    "elsewhere, a script": {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"},
    "elsewhere, another port": {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
    "elsewhere, a redirection": {
        "sec_fetch_site": "cross-site",
        "sec_fetch_mode": "navigate",
        "sec_fetch_dest": "document",
    },
    "elsewhere, a frame": {
        "sec_fetch_site": "cross-site",
        "sec_fetch_mode": "navigate",
        "sec_fetch_dest": "iframe",
        "sec_fetch_user": "?1",
    },
}


@pytest.mark.long
def test_who_is_let_in(site):
    def status(send, **headers):
        code, answered, _ = send("/recipe", **headers)
        assert answered["content-security-policy"] == POLICY
        assert (answered["x-content-type-options"], answered["referrer-policy"]) == ("nosniff", "no-referrer")
        return code

    with served(pages_app(site)) as send:
        for host in ("localhost:8471", "127.0.0.1", "127.0.1.1", "[::1]:8471", "LOCALHOST."):
            assert status(send, host=host) == 200
        for host in (
            *(
                "evil.example:8471",
                "127.0.0.1.evil.example",
                "localhost.evil.example",
                "",
                "[::2]",
                "0.0.0.0",
            ),
        ):
            assert status(send, host=host) == 421
        for name, sent in FETCHES.items():
            expected = 403 if name.startswith("elsewhere") else 200
            assert status(send, **sent) == expected, name
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert status(send, method=method) == 405
        code, headers, text = send("/recipe", method="HEAD")
        assert (code, text) == (200, "")
        assert int(headers["content-length"]) > 1_000
    with served(pages_app(site, hosts=["search.example.org"])) as send:
        assert status(send, host="search.example.org:443") == 200
    with served(pages_app(site, token="sésame")) as send:
        for given in (
            "",
            "Basic !",
            "Basic é",
            "Basic eA==",
            "Bearer x",
            f"Basic {base64.b64encode(b'me:other').decode()}",
        ):
            assert status(send, authorization=given.encode()) == 401
        right = base64.b64encode("me:sésame".encode()).decode()
        assert status(send, authorization=f"Basic {right}", host="search.example.org") == 200


@pytest.mark.long
def test_mounted_under_a_prefix(site):
    with served(Starlette(routes=[Mount("/_shinglefold/pages", pages_app(site))])) as send:
        status, _, text = send("/_shinglefold/pages/", {"q": "ремонт моста"})
        assert status == 200
        own = [
            one
            for tag in ("a", "link", "script")
            for name in ("href", "src")
            for one in check_page(text).values(tag, name)
        ]
        own = {one.partition("#")[0] for one in own if one.startswith("/")}
        assert len(own) > 10
        assert {send(one)[0] for one in own} == {200}
        assert all(one.startswith("/_shinglefold/pages/") for one in own)


@pytest.mark.long
def test_the_command(tmp_path):
    shinglefold.setup(str(tmp_path), "bare", text=["body"], languages=["en"])
    command = [sys.executable, "-m", "shinglefold", "serve", "bare", "--engine", str(tmp_path)]

    def run(*more):
        return subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False)

    for place in ("0.0.0.0:0", "[::]:0"):
        refused = run("--listen", place)
        assert refused.returncode == 2
        assert "--admin-token" in refused.stderr
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        refused = run("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert refused.returncode == 2
    assert "127.0.0.1:0, which takes a free one" in refused.stderr
    # The address is one that a browser can use, also where all addresses are listened at.
    command += ["--listen", "0.0.0.0:0", "--admin-token", "sésame", "--open"]
    browser = {**os.environ, "BROWSER": "echo opened %s"}
    running = subprocess.Popen(
        command, env=browser, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", running.stdout.readline())[1])
        assert running.stdout.readline() == f"opened http://127.0.0.1:{port}/\n"
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            token = {"authorization": f"Basic {base64.b64encode('me:sésame'.encode()).decode()}"}
            connection.request("GET", "/groups", headers={"accept": "application/json", **token})
            message = json.loads(connection.getresponse().read())["error"]["message"]
        # The commands of messages can be typed.
        assert f"--engine {tmp_path}" in message
        running.send_signal(signal.SIGTERM)
        _, remarks = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0
    assert "Traceback" not in remarks


def test_a_result_that_takes_long_is_made_once_and_holds_up_no_other():
    recent, running, going_on, found = Recent(), threading.Event(), threading.Event(), []

    def slow():
        running.set()
        assert going_on.wait(30)
        return "slow"

    waiting = [threading.Thread(target=lambda: found.append(recent.get("a", slow))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert running.wait(30)
    # Neither another result nor one that fails waits for it; one more at the same time is refused.
    assert recent.get("b", lambda: "quick") == "quick"
    with pytest.raises(ZeroDivisionError):
        recent.get("c", lambda: 1 // 0)
    assert recent.get("c", lambda: "mended") == "mended"

    def nested():
        with pytest.raises(EngineUnavailable, match="try again"):
            recent.get("e", slow)
        return "refused"

    assert recent.get("d", nested) == "refused"
    going_on.set()
    for thread in waiting:
        thread.join(30)
    assert found == ["slow"] * 3
    for number in range(40):
        assert recent.get(number, partial(int, number)) == number
    assert recent.get(39, slow) == 39


def test_one_scan_serves_every_number_of_groups(site, monkeypatch):
    scans = []

    def counted(*args, **options):
        scans.append(args)
        return make_report(*args, **options)

    monkeypatch.setattr(index_pages, "make_report", counted)
    with served(pages_app(site)) as send:
        made = [json.loads(send("/groups", {"most": most, "format": "json"})[2]) for most in (1, 2, 100)]
    assert len(scans) == 1
    whole = made[-1]["report"]
    assert len(whole["hosts"]) > 2
    for one, most in zip(made, (1, 2, 100), strict=True):
        report = one["report"]
        for kind in ("hosts", "languages", "largest", "newest"):
            assert report[kind] == whole[kind][:most]
        for kind in ("hosts", "languages"):
            assert report["more"][kind] == len(whole[kind]) - len(report[kind]) + whole["more"][kind]
