"""A server as a container, where a Docker engine runs."""

from typing import Any

from docker.errors import DockerException
from support.servers.admin import answers, ask, until
from support.servers.kinds import Kind
from testcontainers.core.container import DockerContainer

from docker import DockerClient

_PORT = 9200
_ENVIRONMENT = {
    "opensearch": {
        "discovery.type": "single-node",
        "DISABLE_SECURITY_PLUGIN": "true",
        "DISABLE_INSTALL_DEMO_CONFIG": "true",
        "OPENSEARCH_JAVA_OPTS": "-Xms512m -Xmx512m",
    },
    "elasticsearch": {
        "discovery.type": "single-node",
        "xpack.security.enabled": "false",
        "ES_JAVA_OPTS": "-Xms512m -Xmx512m",
    },
}


class ContainerServer:
    """A container that ends with this process: testcontainers has a keeper of its own."""

    how = "container"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._container = DockerContainer(kind.image).with_exposed_ports(_PORT)
        for name, value in {
            **_ENVIRONMENT[kind.product],
            "cluster.routing.allocation.disk.threshold_enabled": "false",
        }.items():
            self._container.with_env(name, value)
        self._container.start()
        until(lambda: answers(self.url))

    @property
    def url(self) -> str:
        return f"http://{self._container.get_container_host_ip()}:{self._container.get_exposed_port(_PORT)}"

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return ask(self.url, method, path, body)

    def stop(self) -> None:
        self._container.stop()


def docker_runs() -> bool:
    """Tell whether a Docker engine answers."""
    try:
        DockerClient.from_env(timeout=5).ping()
    except DockerException:
        return False
    return True


__all__ = ["ContainerServer", "docker_runs"]
