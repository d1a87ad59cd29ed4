"""Who may do what and see what, on an Elasticsearch that asks; and that secrets show nowhere.

Document- and field-level security are not in the basic licence: the server begins the distribution's trial.
"""

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from support.maintenance import PROPERTIES, check_a_backfill_is_refused, copies, put, stored
from support.servers.choose import excused
from support.servers.elasticsearch_security import ElasticsearchSecurity
from support.servers.kinds import kind
from support.servers.local import LocalServer
from support.servers.security import User

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.errors import AuthenticationFailed, ConfigError, EngineUnavailable, PermissionDenied
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.maintenance import DoctorOptions, diagnose
from shinglefold.rerank import FoldedSearch

ADMIN = User("admin", "right-password", "superuser")
READER = User("reader", "readers-password", "reads_public")
WRITER = User("writer", "writers-password", "writes_public")
BLINKERED = User("blinkered", "blinkered-password", "sees_some_fields")
PARTLY = User("partly", "partlys-password", "sees_some_documents")
USERS = [ADMIN, READER, WRITER, BLINKERED, PARTLY]
ROLES = """\
reads_public:
  indices:
    - names: ["public-*"]
      privileges: ["read", "view_index_metadata"]
writes_public:
  indices:
    - names: ["public-*"]
      privileges: ["write"]
sees_some_fields:
  indices:
    - names: ["public-*"]
      privileges: ["read", "write", "view_index_metadata", "maintenance"]
      field_security: {"grant": ["*"], "except": ["body"]}
sees_some_documents:
  indices:
    - names: ["public-*"]
      privileges: ["read", "write", "view_index_metadata", "maintenance"]
      query: {"term": {"open": true}}
"""
SITE = "public-site"


@pytest.fixture(scope="module")
def server(report: list[str]) -> Iterator[LocalServer]:
    with excused():
        server = LocalServer(kind("elasticsearch-9"), ElasticsearchSecurity(USERS, ROLES, trial=True))
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
            put(admin, index, {"1": {"n": 1}})
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


@pytest.fixture
def site(pages: Engine, pipeline: Pipeline) -> dict[str, dict]:
    """Three copies of each of twenty pages, of which one or two are open; all of it by id."""
    if not pages.index_exists(SITE):
        settings = {"number_of_shards": 3, "number_of_replicas": 0}
        index_documents(pages, SITE, copies(), pipeline, properties=PROPERTIES, settings=settings, workers=1)
    return stored(pages, SITE)


@pytest.fixture
def engine_of(connection: Connection) -> Iterator[Callable[[User], Engine]]:
    with ExitStack() as opened:
        yield lambda user: opened.enter_context(
            closing(open_engine(replace(connection, user=user.name, password=user.password)))
        )


@pytest.mark.parametrize("options", [{}, {"explain": True}, {"linkage": "connected"}, {"window": 7}])
def test_a_hidden_field_stands_nowhere_in_an_answer(engine_of, site, scheme, options):
    folded = FoldedSearch(engine_of(BLINKERED), scheme, tiebreaker="id")
    body = {"size": 40, "sort": [{"id": "asc"}], "ext": {"dedup": {"members": 9, **options}}}
    answer = folded.search(SITE, body)
    assert answer["dedup"]["folded"]
    text = json.dumps(answer, ensure_ascii=False)
    assert "Страница" in text
    for source in site.values():
        text = text.replace(source["title"], "")
    assert not [word for source in site.values() for word in source["body"].split() if f" {word} " in text]
    with pytest.raises(ConfigError, match="unknown field"):
        folded.search(SITE, {"ext": {"dedup": {"explain": {"passages": True, "fields": ["body"]}}}})


@pytest.mark.parametrize("options", [{}, {"explain": True}, {"linkage": "connected"}, {"cursor": True}])
def test_a_hidden_document_stands_nowhere_in_an_answer(engine_of, site, scheme, options):
    folded = FoldedSearch(engine_of(PARTLY), scheme, tiebreaker="id")
    body = {"size": 40, "sort": [{"id": "asc"}], "ext": {"dedup": {"members": 9, **options}}}
    text = json.dumps(folded.search(SITE, body))
    shown = {id_ for id_ in site if f'"{id_}"' in text}
    assert shown == {id_ for id_, source in site.items() if source["open"]}


def test_a_doctor_who_does_not_see_the_text_says_so_and_calls_nothing_stale(engine_of, pages, site, pipeline):
    found = diagnose(engine_of(BLINKERED), SITE, pipeline, DoctorOptions(workers=1))
    assert found.findings == {"hidden": len(site)}
    assert found.unseen == ("body",)
    assert diagnose(pages, SITE, pipeline, DoctorOptions(workers=1)).findings == {"sound": len(site)}


@pytest.mark.parametrize("user", [BLINKERED, PARTLY], ids=lambda user: user.name)
def test_a_backfill_by_who_sees_a_part_changes_nothing_and_says_why(
    engine_of, pages, site, scheme, pipeline, user
):
    check_a_backfill_is_refused(pages, engine_of(user), SITE, f"public-{user.name}", pipeline)
