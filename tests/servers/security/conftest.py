"""An OpenSearch with its security plugin, and engines for the users it knows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest
from support.maintenance import PROPERTIES, copies
from support.servers.apart import Apart
from support.servers.kinds import kind
from support.servers.local import LocalServer
from support.servers.opensearch_security import OpenSearchSecurity
from support.servers.security import User

from shinglefold import open as open_index
from shinglefold import setup
from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch

_PUBLIC = ["public-*"]
INDEX = "public-pages"
SETTINGS = {"number_of_shards": 3, "number_of_replicas": 0}
ADMIN = User("chief", "Vrai-mot-de-passe-1", "all")
READER = User("reader", "Vrai-mot-de-passe-2", "reads_public")
WRITER = User("writer", "Vrai-mot-de-passe-3", "writes_public")
#: Sees documents with ``open: true`` only.
PARTLY = User("partly", "Vrai-mot-de-passe-4", "sees_some_documents")
#: Sees no ``body``.
BLINKERED = User("blinkered", "Vrai-mot-de-passe-5", "sees_some_fields")
#: Shows the certificate of this name instead of a password.
CERTIFIED = User("tests", "", "reads_public")
EXAMINER = User("examiner", "Vrai-mot-de-passe-6", "examines_public")
KEEPER = User("keeper", "Vrai-mot-de-passe-7", "keeps_public")
#: Its rights are those that a test gives it.
OWNER = User("owner", "Vrai-mot-de-passe-8", "owns_public")
USERS = (ADMIN, EXAMINER, KEEPER, OWNER, READER, WRITER, PARTLY, BLINKERED, CERTIFIED)


def _role(*actions: str, cluster: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    allowed = {"index_patterns": _PUBLIC, "allowed_actions": list(actions), **more}
    return {"cluster_permissions": list(cluster), "index_permissions": [allowed]}


ROLES = {
    "all": {
        "cluster_permissions": ["*"],
        "index_permissions": [{"index_patterns": ["*"], "allowed_actions": ["*"]}],
    },
    "reads_public": _role("read"),
    "writes_public": _role("write"),
    # As docs/security.md says.
    "examines_public": _role("read", "indices:admin/mappings/get"),
    "keeps_public": _role(
        "read",
        "write",
        "indices:admin/mappings/get",
        "indices:admin/get",
        "indices:admin/refresh*",
        cluster=("cluster_composite_ops",),
    ),
    "owns_public": _role(),
    "sees_some_documents": _role(
        "read", "write", "indices:admin/*", dls='{"term": {"open": true}}', cluster=("cluster_composite_ops",)
    ),
    "sees_some_fields": _role(
        "read", "write", "indices:admin/*", fls=["~body"], cluster=("cluster_composite_ops",)
    ),
}


class Site(NamedTuple):
    """An index that all tests share, which none of them changes."""

    engine: Engine
    folded: FoldedSearch


@pytest.fixture(scope="module")
def secured(apart: Apart) -> LocalServer:
    def make() -> LocalServer:
        return LocalServer(kind("opensearch-security"), OpenSearchSecurity(USERS, ROLES))

    server: LocalServer = apart.running("opensearch-security", make)
    return server


@pytest.fixture
def connection(secured: LocalServer) -> Callable[..., Connection]:

    def make(user: User, /, **more: Any) -> Connection:
        made = secured.certificates
        proof = (
            {"user": user.name, "password": user.password}
            if user.password
            else {"client_cert": str(made.client)}
        )
        return Connection(**{"urls": (secured.url,), "ca_file": str(made.authority), **proof, **more})

    return make


@pytest.fixture
def engine_of(connection) -> Iterator[Callable[..., Engine]]:
    """Open the engine of a user; closed at the end."""
    with ExitStack() as opened:
        yield lambda user, /, **more: opened.enter_context(closing(open_engine(connection(user, **more))))


@pytest.fixture
def users() -> dict[str, User]:
    return {user.name: user for user in USERS}


@pytest.fixture
def owner(secured, monkeypatch, tmp_path) -> Callable[[Sequence[str], Sequence[str]], None]:
    """Let commands run as a user; give it these rights on public indices, and these on the cluster."""
    monkeypatch.chdir(tmp_path)
    given = {
        "URL": secured.url,
        "USER": OWNER.name,
        "PASSWORD": OWNER.password,
        "CA_FILE": str(secured.certificates.authority),
    }
    for name, value in given.items():
        monkeypatch.setenv(f"SHINGLEFOLD_ENGINE_{name}", value)

    def grant(on_indices: Sequence[str], on_cluster: Sequence[str]) -> None:
        role = _role(*on_indices, cluster=on_cluster)
        role["index_permissions"][0]["index_patterns"] = [*_PUBLIC, "shinglefold-gate-public-*"]
        secured.ask("PUT", f"/_plugins/_security/api/roles/{OWNER.role}", role)

    return grant


@pytest.fixture
def site(engine_of, scheme) -> Site:
    """The administrator's engine, and an index of copies, of which some users do not see all."""
    admin = engine_of(ADMIN)
    if not admin.index_exists(INDEX):
        pipeline = Pipeline.from_json(default_definition(), scheme)
        index_documents(admin, INDEX, copies(), pipeline, properties=PROPERTIES, settings=SETTINGS, workers=1)
        admin.create_index("secret-pages", {}, {})
    return Site(admin, FoldedSearch(admin, scheme, tiebreaker="id"))


@pytest.fixture
def grouped(connection, engine_of) -> str:
    """An index of the same copies with the numbers of their groups."""
    admin, where, name = engine_of(ADMIN), connection(ADMIN), "public-grouped"
    if not admin.index_exists(name):
        setup(where, name, text=["title", "body"], languages=["ru"], groups=True, properties=PROPERTIES)
        with closing(open_index(where, name)) as index:
            assert index.index(copies()).indexed == len(copies())
        admin.refresh(name)
    return name
