"""Documents on a cluster of three whose nodes are killed, and what must be true of them afterwards."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.maintenance import mapped, pages, store, wrongly_signed
from support.servers.cluster import Cluster
from support.servers.local import LocalServer

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.model.scheme import Scheme

COUNT = 2_500
SETTINGS = {"number_of_shards": 3, "number_of_replicas": 1}


@pytest.fixture(scope="session")
def documents() -> list[dict[str, Any]]:
    return pages(COUNT)


@pytest.fixture
def whole(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, which is whole before and after a test."""
    cluster.wait_until_whole()
    yield cluster
    cluster.wait_until_whole()


@pytest.fixture
def admin(whole: Cluster) -> Iterator[Engine]:
    """An engine that knows all nodes, to look at what is stored."""
    with closing(open_engine(Connection(whole.urls))) as engine:
        yield engine


@pytest.fixture
def index(admin: Engine, whole: Cluster, scheme: Scheme) -> Iterator[str]:
    """An empty index that is set up for fingerprints, its copies in place."""
    name = f"shinglefold-cluster-{uuid.uuid4().hex[:12]}"
    admin.create_index(name, mapped(scheme), SETTINGS)
    whole.wait_until_whole()
    yield name
    # Before the node is back: nobody needs its copies.
    admin.delete_index(name)


@pytest.fixture
def unsigned(admin: Engine, index: str, documents: list[dict[str, Any]]) -> str:
    """The index, full of documents without fingerprints."""
    store(admin, index, documents)
    return index


class Mishap:
    """Kills the node of a role at the n-th call of a method, while the call is under way; starts it again.

    Args:
        stays: away until all is over.
    """

    def __init__(self, cluster: Cluster, role: str, index: str, stays: bool = False) -> None:
        self.cluster, self.stays = cluster, stays
        self.node = node_of(cluster, role, index)
        urls = (self.node.url,) if role == "asked" else cluster.urls
        self.engine = open_engine(Connection(urls, timeout=10))
        self.happened = threading.Event()
        self._threads: list[threading.Thread] = []

    def at(self, method: str, number: int = 2) -> Engine:
        """Return the engine, in the midst of whose n-th call of a method the node is killed."""
        return _Watched(self, method, number)  # type: ignore[return-value]

    def strike(self, pause: float = 0.02) -> None:
        """Kill the node now, but for a moment, and start it again."""
        self.happened.set()
        self._threads.append(threading.Thread(target=self._kill, args=(pause,)))
        self._threads[-1].start()

    def check_it_happened(self) -> None:
        assert self.happened.is_set()
        self.over()

    def over(self) -> None:
        """Wait until the node has been killed and started; a test that ends before leaves an index to a node
        that is about to be killed."""
        for thread in self._threads:
            thread.join()
        if not self.node.runs:
            self.node.start(wait=False)
        self.engine.close()

    def _kill(self, pause: float) -> None:
        threading.Event().wait(pause)
        self.node.kill()
        if not self.stays:
            self.node.start(wait=False)


class _Watched:
    def __init__(self, mishap: Mishap, method: str, number: int) -> None:
        self._mishap, self._method, self._left = mishap, method, number
        self._turn = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._mishap.engine, name)
        if name != self._method:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            with self._turn:
                self._left -= 1
                if self._left == 0:
                    self._mishap.strike()
            return found(*arguments, **named)

        return call


def node_of(cluster: Cluster, role: str, index: str) -> LocalServer:
    """Return the node of a role: the only one that is asked, one with primaries, the one that was elected."""
    if role == "elected":
        return cluster.elected()
    if role == "primary":
        return cluster.primary(index)
    # One that is neither, where there is one, so that the three roles are three cases.
    others = [node for node in cluster.nodes if node not in (cluster.elected(), cluster.primary(index))]
    return others[0]


@pytest.fixture
def mishap(whole: Cluster) -> Iterator[Callable[..., Mishap]]:
    """Prepare a mishap: ``mishap(role, index)``, ``stays=True`` for a node that does not come back."""
    made: list[Mishap] = []

    def prepare(role: str, index: str, stays: bool = False) -> Mishap:
        whole.wait_until_whole()
        made.append(Mishap(whole, role, index, stays))
        return made[-1]

    yield prepare
    for one in made:
        one.over()


@pytest.fixture
def sound(admin: Engine, canonicalizer: Canonicalizer, scheme: Scheme, documents: list[dict[str, Any]]):
    """Check that an index holds every document once, as it was, with the fingerprint of its text."""

    def check(index: str) -> None:
        admin.refresh(index)
        hits = admin.search(index, {"size": 10_000, "track_total_hits": True})["hits"]
        assert hits["total"]["value"] == len(hits["hits"]) == len(documents)
        sources = {hit["_id"]: hit["_source"] for hit in hits["hits"]}
        plain = {id_: {k: v for k, v in source.items() if k != "_dedup"} for id_, source in sources.items()}
        assert plain == {one["id"]: one for one in documents}
        assert list(wrongly_signed(sources, Fingerprinter(scheme, canonicalizer))) == []

    return check


@pytest.fixture
def letters(documents: list[dict[str, Any]], tmp_path: Path) -> Path:
    """The letters of a run whose server was too busy for every document."""
    path = tmp_path / "failed.jsonl"
    with closing(DeadLetters(path)) as file:
        for number, one in enumerate(documents, 1):
            file.write("index", "503: busy", Record(dict(one), "pages", number))
    return path
