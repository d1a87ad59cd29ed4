"""Real servers for the tests of this folder, one at a time; at the end it is told what was tested on."""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pytest
from support.gateway import Gateway, running_gateway
from support.servers.admin import ingest_processors
from support.servers.apart import Apart
from support.servers.choose import CLUSTER, clustered, clusters, running, wanted_here
from support.servers.cluster import Cluster
from support.servers.kinds import kind
from support.servers.lines import LINES
from support.servers.local import LocalServer, minimal
from support.servers.server import Server

from shinglefold.cli.main import main
from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.model.scheme import Scheme

_CLIENTS = {"opensearch": "opensearch-py", "elasticsearch": "elasticsearch"}


#: Exit code, output and errors of a command.
Run = Callable[..., tuple[int, str, str]]


class NewIndex(Protocol):
    """Make an index; it is deleted afterwards."""

    def __call__(
        self, mappings: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> str: ...


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> list[str]:
    return pytestconfig.stash[LINES]


@pytest.fixture(scope="session", params=wanted_here())
def server(request: pytest.FixtureRequest, report: list[str]) -> Iterator[Server]:
    """A running server; pytest sorts the tests by it, so that one runs at a time."""
    begin = time.monotonic()
    with running(request.param) as server:
        waited = time.monotonic() - begin
        engine = open_engine(server.url)
        info = engine.info()
        engine.close()
        client = _CLIENTS[info["distribution"]]
        origin = f"{server.how}, up in {waited:.0f} s"
        report.append(
            f"{request.param}: {info['distribution']} {info['version']} ({origin}), "
            f"client {client} {version(client)}"
        )
        if server.kind is not None:
            assert (info["distribution"], info["version"]) == (server.kind.product, server.kind.version)
        yield server


@pytest.fixture(scope="session")
def apart(report: list[str]) -> Iterator[Apart]:
    """Starts the servers that only some tests are about."""
    servers = Apart(report)
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def knn(apart: Apart) -> LocalServer:
    server: LocalServer = apart.running("opensearch-knn", lambda: LocalServer(kind("opensearch-knn")))
    return server


@pytest.fixture(scope="module", params=clusters() or [CLUSTER])
def cluster(request: pytest.FixtureRequest, apart: Apart) -> Cluster:
    """Three nodes, all there and whole; a test that kills one starts it again (``wait_until_whole``)."""
    made: Cluster = apart.running(request.param, lambda: Cluster(minimal(clustered(request.param))))
    return made


@pytest.fixture(scope="session")
def engine(server: Server) -> Iterator[Engine]:
    engine = open_engine(server.url)
    yield engine
    engine.close()


@pytest.fixture
def first() -> int:
    """The first of a row of seeds; it is printed."""
    seed = random.SystemRandom().randrange(10**9)
    print("seeds from", seed)
    return seed


@pytest.fixture(scope="session")
def pipeline(scheme: Scheme) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme)


@pytest.fixture
def run(server: Server, capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path) -> Run:
    """Run a command on the server, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*arguments, *(() if "--engine" in arguments else ("--engine", server.url))])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def name(engine: Engine) -> Iterator[str]:
    """The beginning of the names of indices, which are deleted afterwards."""
    made = f"shinglefold-test-{uuid.uuid4().hex[:8]}"
    yield made
    for info in engine.indices(f"{made}*"):
        engine.delete_index(info.name)


@pytest.fixture
def ingest_pipeline(server: Server) -> Iterator[Callable[..., str]]:
    """Make a pipeline of the server from processors, and return its name."""
    if not {"drop", "set", "remove", "rename", "gsub", "copy"} & ingest_processors(server.url):
        pytest.skip("this server was built without ingest processors")
    made: list[str] = []

    def make(*processors: Mapping[str, Any]) -> str:
        made.append(f"shinglefold-test-{uuid.uuid4().hex[:8]}")
        server.ask("PUT", f"/_ingest/pipeline/{made[-1]}", {"processors": processors})
        return made[-1]

    yield make
    for one in made:
        server.ask("DELETE", f"/_ingest/pipeline/{one}")


@pytest.fixture(scope="module")
def gateway(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    log = tmp_path_factory.mktemp("gateway") / "log"
    with running_gateway(log, server.url, options=("--workers", "1")) as running:
        yield running


@pytest.fixture
def new_index(engine: Engine) -> Iterator[NewIndex]:
    with _indices(engine) as make:
        yield make


@pytest.fixture(scope="module")
def shared_index(engine: Engine) -> Iterator[NewIndex]:
    """Make an index that the tests of a module read, and none of them writes to."""
    with _indices(engine) as make:
        yield make


@contextmanager
def _indices(engine: Engine) -> Iterator[NewIndex]:
    made: list[str] = []

    def make(mappings: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None) -> str:
        made.append(f"shinglefold-test-{uuid.uuid4().hex[:12]}")
        engine.create_index(made[-1], mappings or {}, settings or {})
        return made[-1]

    yield make
    for index in made:
        if engine.index_exists(index):
            engine.delete_index(index)
