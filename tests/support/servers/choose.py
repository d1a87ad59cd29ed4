"""Which servers the tests run on here, and where each comes from."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import pytest
from packaging.requirements import Requirement
from support.servers.kinds import Kind, Unavailable, all_kinds, kind
from support.servers.local import LocalServer
from support.servers.server import Given, Server

#: Environment: the address of a server to test on, or the names of those of the matrix to take.
URL = "SHINGLEFOLD_TEST_URL"
NAMES = "SHINGLEFOLD_TEST_SERVERS"
_GIVEN = "given"
#: Three servers of the matrix as one cluster.
CLUSTER = "cluster"


def wanted() -> list[str]:
    """Return the names of the servers asked for: the matrix, unless the environment says otherwise."""
    if os.environ.get(URL):
        return [_GIVEN]
    return [name for name in _named() if name != CLUSTER and not kind(name).apart]


def _named() -> list[str]:
    return [name.strip() for name in os.environ.get(NAMES, ",".join(all_kinds())).split(",")]


def need(name: str) -> None:
    """Skip the tests about a server that stands apart where others were asked for."""
    if os.environ.get(URL) or (os.environ.get(NAMES) and name not in _named()):
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
        if os.environ.get("CI", "").lower() == "true":
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
