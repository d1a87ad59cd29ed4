"""Who may do what, on an Elasticsearch that asks; and that secrets show nowhere."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from support.servers.choose import excused
from support.servers.elasticsearch_security import ElasticsearchSecurity
from support.servers.kinds import kind
from support.servers.local import LocalServer
from support.servers.security import User

from shinglefold.contracts import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.errors import AuthenticationFailed, EngineUnavailable, PermissionDenied

ADMIN = User("admin", "right-password", "superuser")
READER = User("reader", "readers-password", "reads_public")
WRITER = User("writer", "writers-password", "writes_public")
ROLES = """\
reads_public:
  indices:
    - names: ["public-*"]
      privileges: ["read", "view_index_metadata"]
writes_public:
  indices:
    - names: ["public-*"]
      privileges: ["write"]
"""


@pytest.fixture(scope="module")
def server(report: list[str]) -> Iterator[LocalServer]:
    with excused():
        server = LocalServer(kind("elasticsearch-9"), ElasticsearchSecurity([ADMIN, READER, WRITER], ROLES))
    report.append(f"secured: {server.kind.product} {server.kind.version} ({server.how})")
    yield server
    server.stop()


@pytest.fixture
def connection(server: LocalServer) -> Connection:
    """What lets the administrator in."""
    made = server.certificates
    return Connection(
        (server.url,),
        user=ADMIN.name,
        password=ADMIN.password,
        ca_file=str(made.authority),
        client_cert=str(made.client),
    )


@pytest.fixture
def pages(connection: Connection) -> Iterator[Engine]:
    """The administrator's engine, with two indices."""
    with closing(open_engine(connection)) as admin:
        for index in ("public-pages", "secret-pages"):
            if not admin.index_exists(index):
                admin.create_index(index, {"properties": {"n": {"type": "integer"}}}, {})
            admin.bulk([{"_index": index, "_id": "1", "_source": {"n": 1}}])
            admin.refresh(index)
        yield admin


@pytest.fixture
def reader(connection: Connection, pages: Engine) -> Iterator[Engine]:
    with closing(open_engine(replace(connection, user=READER.name, password=READER.password))) as engine:
        yield engine


@pytest.mark.parametrize("product", ["", "elasticsearch"])
def test_a_user_with_a_certificate_gets_in(connection, product):
    with closing(open_engine(replace(connection, product=product))) as engine:
        assert engine.info()["distribution"] == "elasticsearch"


@pytest.mark.parametrize("product", ["", "elasticsearch", "opensearch"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "admin", "password": "wrong-password"},
        {"user": "nobody", "password": "right-password"},
        {"user": "", "password": ""},
        {"user": "", "password": "", "api_key": "some-id:some-key"},
        {"user": "", "password": "", "bearer_token": "some-token"},
    ],
)
def test_whoever_the_server_does_not_know_stays_outside(connection, caplog, product, wrong):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(AuthenticationFailed, match="Check user and password, API key or token") as caught:
        _use(replace(connection, product=product, **wrong))
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(caught.value)
    for secret in filter(None, [wrong.get("password"), "some-key", "some-token"]):
        assert secret not in told


def test_a_right_is_missing(reader):
    assert reader.get("public-pages", "1")["_source"] == {"n": 1}
    assert reader.search("public-pages", {})["hits"]["total"]["value"] == 1
    for refused in (
        lambda: reader.search("secret-pages", {}),
        lambda: reader.get("secret-pages", "1"),
        lambda: reader.open_pit("secret-pages"),
        lambda: reader.mappings("secret-pages"),
        lambda: reader.create_index("public-more", {}, {}),
        lambda: reader.delete_index("public-pages"),
    ):
        with pytest.raises(PermissionDenied, match="Ask for a role that allows it"):
            refused()


def test_a_user_who_may_not_write_at_all_is_told(reader):
    with pytest.raises(PermissionDenied, match="bulk"):
        reader.bulk([{"_index": "public-pages", "_id": "2", "_source": {"n": 2}}])


def test_a_user_who_may_only_write_writes_where_allowed_and_gets_the_rest_back(connection, pages):
    with closing(open_engine(replace(connection, user=WRITER.name, password=WRITER.password))) as writer:
        actions = [
            {"_index": index, "_id": "2", "_source": {"n": 2}} for index in ("public-pages", "secret-pages")
        ]
        result = writer.bulk(actions)
    assert result.indexed == 1
    assert [(failure.action, failure.status) for failure in result.failures] == [(actions[1], 403)]
    assert "security_exception" in result.failures[0].reason
    assert pages.get("public-pages", "2")["_source"] == {"n": 2}
    assert pages.get("secret-pages", "2") is None


def test_without_the_certificates_there_is_no_connection(connection, server):
    made = server.certificates
    for wrong in ({"ca_file": ""}, {"ca_file": str(made.stranger)}, {"client_cert": ""}):
        for product in ("", "elasticsearch", "opensearch"):
            with pytest.raises(EngineUnavailable, match="certificates"):
                _use(replace(connection, product=product, **wrong))


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("product", ["", "elasticsearch", "opensearch"])
def test_the_servers_certificate_is_not_looked_at_when_told_so(connection, product):
    with closing(open_engine(replace(connection, product=product, ca_file="", verify=False))) as engine:
        assert not engine.index_exists("absent")


def test_no_secret_is_printed(connection):
    with closing(open_engine(connection)) as engine:
        assert ADMIN.password not in f"{connection!r} {connection} {engine!r} {engine}"


def _use(connection: Connection) -> None:
    with closing(open_engine(connection)) as engine:
        engine.index_exists("public-pages")
        engine.info()
