"""Which servers the tests run on here, and where each comes from."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import pytest
from packaging.requirements import Requirement
from support.servers.kinds import Kind, Unavailable, all_kinds, kind, usual_kinds
from support.servers.local import LocalServer
from support.servers.server import Given, Server

#: Environment: the address of a server to test on, the names of those of the matrix to take, and whether
#: tests that take long are made without any.
URL = "SHINGLEFOLD_TEST_URL"
NAMES = "SHINGLEFOLD_TEST_SERVERS"
LONG = "SHINGLEFOLD_TEST_LONG"
_GIVEN = "given"
_ALL = "all"
#: Three servers of the matrix as one cluster: those of the first name, or of that behind the dash.
CLUSTER = "cluster"
_CLUSTERED = "opensearch-3"
#: A cluster that goes by the same tests, of which "all" runs those alone that are marked ``every_cluster``.
_IN_SHORT = "cluster-elasticsearch-9"


def in_ci() -> bool:
    """Tell whether these are the tests of CI, which needs every server."""
    return os.environ.get("CI", "").lower() == "true"


def asked_for() -> list[str]:
    """Return the names of the servers asked for: none unless the environment names some, in CI all."""
    if os.environ.get(URL):
        return [_GIVEN]
    named = os.environ.get(NAMES) or (_ALL if in_ci() else "")
    if named == _ALL:
        return [*all_kinds(), CLUSTER, _IN_SHORT]
    return [name.strip() for name in named.split(",") if name.strip()]


def in_full() -> bool:
    """Tell whether what takes long is tested, too: where servers are, and where that alone is asked for."""
    return bool(asked_for() or os.environ.get(LONG))


def examples(most: int) -> int:
    """Return how many examples of a property are tried: the most where what takes long is, else a third."""
    return most if in_full() else most // 3


def wanted() -> list[str]:
    """Return those of ``asked_for`` that every test of servers runs on."""
    return [
        name for name in asked_for() if name == _GIVEN or (name not in clusters() and not kind(name).apart)
    ]


def clusters() -> list[str]:
    """Return those of ``asked_for`` that are clusters."""
    return [name for name in asked_for() if name == CLUSTER or name.startswith(f"{CLUSTER}-")]


def clustered(name: str) -> Kind:
    """Return what the nodes of a cluster are."""
    return kind(name.removeprefix(f"{CLUSTER}-") if name != CLUSTER else _CLUSTERED)


def in_short(cluster: str) -> bool:
    """Tell whether a cluster is here for a few tests alone, as it was not asked for by its name."""
    return cluster == _IN_SHORT and cluster not in os.environ.get(NAMES, "").split(",")


def is_older(server: str) -> bool:
    """Tell whether a server is of an older generation, and was not asked for by its name."""
    usual = usual_kinds()
    if server not in usual or server in os.environ.get(NAMES, "").split(","):
        return False
    return server != next(name for name, one in usual.items() if one.product == usual[server].product)


def need(name: str) -> None:
    """Skip the tests about a server that stands apart where others were asked for."""
    if name not in asked_for():
        pytest.skip(f"{name} is not among the servers asked for ({URL}, {NAMES})")


def wanted_here() -> list[str]:
    """Return those of ``wanted`` that the installed clients can talk to."""
    return [name for name in wanted() if name == _GIVEN or client_fits(kind(name))]


def wanted_elsewhere() -> list[str]:
    """Return those of ``wanted`` that need a client of another generation than the one installed."""
    return [name for name in wanted() if name not in wanted_here()]


def client_fits(kind: Kind) -> bool:
    """Tell whether the installed client is of the server's generation; one not installed is nobody's."""
    if not kind.client:
        return True
    requirement = Requirement(kind.client)
    try:
        return requirement.specifier.contains(version(requirement.name))
    except PackageNotFoundError:
        return False


@contextmanager
def running(name: str) -> Iterator[Server]:
    """Start a server for as long as the tests need it; skip them where none can be had, in CI fail."""
    with excused():
        server = start(name)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def excused() -> Iterator[None]:
    """Turn ``Unavailable`` into a skip with its reason, and into a failure in CI."""
    try:
        yield
    except Unavailable as reason:
        if in_ci():
            pytest.fail(f"CI must test on real servers, but {reason}", pytrace=False)
        pytest.skip(f"no server: {reason}")


def start(name: str) -> Server:
    """Return a running server: the one given, a container, or a local process, in this order."""
    if name == _GIVEN:
        return Given(os.environ[URL])
    if _docker_runs():
        from support.servers.containers import ContainerServer

        return ContainerServer(kind(name))
    return LocalServer(kind(name))


@cache
def _docker_runs() -> bool:
    try:
        from support.servers.containers import docker_runs
    except ModuleNotFoundError:
        return False
    return docker_runs()
