"""Local servers as one cluster: any node may be killed and started again."""

from collections.abc import Sequence
from typing import Any

from support.servers.admin import until
from support.servers.kinds import Kind
from support.servers.local import LocalServer, free_port

_NODES = 3


class Cluster:
    """Three nodes, or one of each kind, on loopback; all may be elected and hold shards."""

    def __init__(self, kind: Kind, *others: Kind) -> None:
        self.kind = kind
        kinds = [kind, *others] if others else [kind] * _NODES
        self.how = f"{len(kinds)} local processes"
        ports = [free_port() for _ in kinds]
        self.nodes: list[LocalServer] = []
        try:
            for number, one in enumerate(kinds):
                settings = _settings(number, ports, self._manager)
                self.nodes.append(LocalServer(one, settings=settings, wait=False))
            self.wait_until_whole()
        except BaseException:
            self.stop()
            raise

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(node.url for node in self.nodes)

    @property
    def url(self) -> str:
        return self.nodes[0].url

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask the first node that answers, past all clients."""
        for node in self.nodes:
            if node.runs:
                return node.ask(method, path, body)
        raise ConnectionError("no node runs")

    def elected(self) -> LocalServer:
        """Return the node that was elected to manage the cluster."""
        elected = f"{self._manager}_node"
        state = self.ask("GET", f"/_cluster/state/{elected},nodes")
        return self._named(state["nodes"][state[elected]]["name"])

    def primary(self, index: str, shard: int = 0) -> LocalServer:
        state = self.ask("GET", f"/_cluster/state/routing_table,nodes/{index}")
        copies = state["routing_table"]["indices"][index]["shards"][str(shard)]
        (node,) = (copy["node"] for copy in copies if copy["primary"])
        return self._named(state["nodes"][node]["name"])

    def wait_until_whole(self) -> None:
        """Start the nodes that are down, and wait until all are there with every copy of every shard."""
        for node in self.nodes:
            if not node.runs:
                node.start(wait=False)
        for node in self.nodes:
            node.wait_until_up()
        until(self._is_whole)

    def stop(self) -> None:
        """End all nodes; a second call does nothing."""
        for node in self.nodes:
            node.stop()

    @property
    def _manager(self) -> str:
        """What the product calls the node that manages the cluster."""
        return "cluster_manager" if self.kind.product == "opensearch" else "master"

    def _is_whole(self) -> bool:
        try:
            path = f"/_cluster/health?wait_for_nodes={len(self.nodes)}&wait_for_status=green&timeout=10s"
            return not self.ask("GET", path)["timed_out"]
        except OSError:
            return False

    def _named(self, name: str) -> LocalServer:
        return self.nodes[int(name.removeprefix("node-"))]


def _settings(number: int, ports: Sequence[int], manager: str) -> dict[str, object]:
    return {
        "node.name": f"node-{number}",
        "cluster.name": f"shinglefold-{ports[0]}",
        "discovery.type": None,
        "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in ports],
        f"cluster.initial_{manager}_nodes": [f"node-{other}" for other in range(len(ports))],
        "transport.port": ports[number],
    }
