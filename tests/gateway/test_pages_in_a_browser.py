"""The pages in a real browser: no violation of accessibility rules, nothing refused by their own policy."""

import os
import shutil
import socket
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
import uvicorn

import shinglefold
from shinglefold.examples import temporary_index
from shinglefold.gateway.pages import pages_app

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
#: Where axe-core's script is: a file named by the variable, or one that npm installed here.
AXE = Path(os.environ.get("SHINGLEFOLD_TEST_AXE") or "node_modules/axe-core/axe.min.js")
PAGES = (
    "/?q=ремонт моста",
    "/?q=绿茶&lang=zh&representative=newest:date",
    "/groups?lang=ru",
    "/compare?a=ru-bridge-repair-1&b=ru-bridge-repair-2&lang=uk",
    "/adviser?resemblance=.3&strangers=.5",
    "/recipe?examine=1",
    "/?query=x",
)


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no chromium: apt-get install chromium")
    if not AXE.is_file():
        pytest.skip("no axe-core: npm install axe-core, or name its axe.min.js in SHINGLEFOLD_TEST_AXE")
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with driver.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address():
    with (
        closing(shinglefold.open(temporary_index("site"), "site")) as site,
        closing(socket.create_server(("127.0.0.1", 0))) as listening,
    ):
        server = uvicorn.Server(uvicorn.Config(pages_app(site), log_level="critical"))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, address, scheme):
    # Scripts of a test would be refused, too; the policy of the pages holds in the test below.
    with browser.new_context(color_scheme=scheme, bypass_csp=True) as context:
        for path in PAGES:
            with context.new_page() as page:
                page.goto(address + path)
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                page.add_script_tag(path=str(AXE))
                found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
                assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == [], path


def test_nothing_is_refused_and_the_script_works(browser, address):
    with browser.new_context(locale="en") as context, context.new_page() as page:
        refused = []
        page.on("console", lambda message: refused.append(message.text))
        page.on("pageerror", lambda error: refused.append(str(error)))
        for path in PAGES[:-1]:
            page.goto(address + path)
        page.goto(address + PAGES[0])
        folds = page.locator("details.fold")
        assert page.locator("details.fold[open]").count() == 1 < folds.count()
        page.get_by_role("button", name="Open all").click()
        assert page.locator("details.fold[open]").count() == folds.count()
        page.get_by_role("searchbox").fill("water main")
        page.keyboard.press("Enter")
        page.wait_for_url("**q=water+main**")
        assert page.locator("li.result").count() > 1
        assert refused == []
