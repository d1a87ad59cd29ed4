"""The compose files: healthy in order, open to this machine only, and of the versions that are tested on."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.servers.kinds import all_kinds

from shinglefold.engines.http.connection import is_server
from shinglefold.settings import load_settings

DOCKER = Path(__file__).resolve().parents[2] / "docker"
PRODUCTS = {"opensearch": "opensearch-3", "elasticsearch": "elasticsearch-9"}
SURFACE = {"opensearch": "dashboards", "elasticsearch": "kibana"}


@pytest.fixture(params=sorted(PRODUCTS))
def product(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def services(product: str) -> dict[str, Any]:
    parsed = yaml.safe_load((DOCKER / f"compose.{product}.yml").read_text("utf-8"))
    assert set(parsed) == {"name", "services", "volumes"}
    return dict(parsed["services"])


def test_there_is_a_file_for_each_product_and_no_other():
    assert {path.name for path in DOCKER.glob("*.yml")} == {f"compose.{name}.yml" for name in PRODUCTS}


def test_the_versions_are_those_tested_on(product, services):
    tested = all_kinds()[PRODUCTS[product]]
    assert services[product]["image"] == tested.image
    assert services[SURFACE[product]]["image"].endswith(f":{tested.version}")
    newest = max(kind.major for kind in all_kinds().values() if kind.product == product)
    assert tested.major == newest


def test_whatever_stays_up_says_when_it_is_healthy(services):
    for name, service in services.items():
        if service.get("profiles") == ["tools"]:
            continue
        check = service["healthcheck"]
        assert check["test"][0] == "CMD-SHELL", name
        (port,) = service["ports"]
        assert f"localhost:{port.rsplit(':', 1)[1]}/" in check["test"][1], name
        assert {"interval", "timeout", "retries", "start_period"} < check.keys(), name


def test_ports_are_open_to_this_machine_only(services):
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert sorted(ports) == ["127.0.0.1:5601:5601", "127.0.0.1:9200:9200", "127.0.0.1:9201:9201"]


def test_the_rest_waits_for_the_engine(product, services):
    for name, service in services.items():
        if name != product:
            assert service["depends_on"] == {product: {"condition": "service_healthy"}}
            assert f"http://{product}:9200" in str(service["environment"])


def test_each_value_of_an_environment_is_text(services):
    # Compose refuses a bare true, and a number loses its zeros.
    values = [value for service in services.values() for value in service["environment"].values()]
    assert all(isinstance(value, str) for value in values)


def test_the_engine_keeps_its_data_and_has_a_heap_of_one_size(product, services):
    engine = services[product]
    assert engine["volumes"] == [f"data:/usr/share/{product}/data"]
    (options,) = (value for key, value in engine["environment"].items() if key.endswith("_JAVA_OPTS"))
    least, most = options.split()
    assert least.removeprefix("-Xms") == most.removeprefix("-Xmx")


def test_shinglefold_is_built_from_here_and_finds_the_engine(product, services):
    service = services["shinglefold"]
    build = service["build"]
    context = (DOCKER / build["context"]).resolve()
    assert (context / "pyproject.toml").exists()
    assert (context / build["dockerfile"]).exists()
    where = load_settings(environ=service["environment"]).data_dir
    assert is_server(where)
    for volume in service["volumes"]:
        assert (DOCKER / volume.split(":")[0]).resolve().is_dir()
