"""Stores of frameworks, as they are published, over an index whose searches are folded unasked."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from servers.drop_in.framework_stores import TEXTS

import shinglefold

SCRIPT = Path(__file__).with_name("framework_stores.py")
PACKAGES = (
    "elasticsearch-haystack>=7,<8",
    "opensearch-haystack>=9,<10",
    "langchain-elasticsearch>=1,<2",
)
#: Of which products the published stores run here.
STORES = {"haystack": ("opensearch", "elasticsearch"), "langchain": ("elasticsearch",)}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the packages of the stores, and shinglefold behind them."""
    environment = tmp_path_factory.mktemp("stores")
    uv, python = [sys.executable, "-m", "uv", "--quiet", "--native-tls"], environment / "bin" / "python"
    subprocess.run([*uv, "venv", "--python", sys.executable, environment], check=True)
    subprocess.run([*uv, "pip", "install", "--python", python, *PACKAGES], check=True)
    own = sysconfig.get_path("purelib")
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "behind.pth").write_text(f"import site; site.addsitedir({own!r})\n", "utf-8")
    return python


@pytest.mark.long
@pytest.mark.newest
@pytest.mark.parametrize("framework", STORES)
def test_a_store_finds_each_group_once_and_ends(framework, python, server, engine, gateway, new_index):
    product = engine.info()["distribution"]
    if product not in STORES[framework]:
        pytest.skip(f"LangChain's store of {product} searches by vectors, which needs its k-NN plugin")
    field = "content" if framework == "haystack" else "text"
    index = new_index({"properties": {field: {"type": "text"}}})
    shinglefold.setup(server.url, index, text=[field], languages=["en"], fold=True)
    url = gateway.url if (framework, product) == ("haystack", "opensearch") else server.url
    ran = subprocess.run(
        [python, SCRIPT, framework, product, url, index],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert sorted(TEXTS.index(text) // 3 + (TEXTS.index(text) > 4) for text in found) == [0, 1, 2], found
