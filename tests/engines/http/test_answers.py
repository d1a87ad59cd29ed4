"""Answers of a server, and the product that gives them."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from elasticsearch import SerializationError as NotJson
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy.exceptions import SerializationError as NotJsonEither
from support.serving import Answer, Request, answering, as_json

from shinglefold.engines import open_engine
from shinglefold.engines.elasticsearch import ElasticsearchSerializer as OfElasticsearch
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.product_detection import product_of
from shinglefold.engines.http.responses import one_mapping, read_json
from shinglefold.engines.opensearch import OpenSearchSerializer as OfOpenSearch
from shinglefold.errors import AuthenticationFailed, ConfigError, EngineError, EngineUnavailable
from shinglefold.model.recipe import Recipe, missing_recipe


def index(properties, **rest):
    return {"mappings": {"properties": properties, **rest}}


def test_objects_of_several_indices_are_joined_field_by_field():
    one = index({"meta": {"properties": {"a": {"type": "keyword"}}}})
    other = index({"meta": {"properties": {"b": {"type": "keyword"}}}, "c": {"type": "date"}})
    joined = one_mapping("all", {"one": one, "other": other}, "the server")["properties"]
    assert joined.keys() == {"meta", "c"}
    assert joined["meta"]["properties"].keys() == {"a", "b"}
    assert one["mappings"]["properties"]["meta"]["properties"].keys() == {"a"}


def test_who_noted_a_recipe_makes_no_difference_and_the_rest_does():
    def noted(id_, product):
        return index({}, _meta={"shinglefold": {"id": id_, "product": product}})

    alike = {"one": noted("sf3-1", "0.1.0"), "other": noted("sf3-1", "0.2.0")}
    assert one_mapping("all", alike, "the server")["_meta"] == {"shinglefold": {"id": "sf3-1"}}
    unlike = {"one": noted("sf3-1", "0.1.0"), "other": noted("sf3-2", "0.1.0")}
    joined = one_mapping("all", unlike, "the server")
    assert "shinglefold" not in joined["_meta"]
    with pytest.raises(ConfigError, match=f"different recipes .*{', '.join(sorted(unlike))}.*name one"):
        Recipe.of(joined, "all")
    # As of commands that name what is missing themselves.
    assert "different recipes" in missing_recipe(joined, "all")


def test_where_one_index_stores_fields_unmapped_all_may_have_any():
    found = {"one": index({}, dynamic="false"), "other": index({"a": {"type": "keyword"}})}
    assert one_mapping("all", found, "the server")["dynamic"] == "false"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OUT_OF_THE_ORDINARY = [
    '{"id": 123456789012345678901234567890}',
    '{"id": -123456789012345678901234567890}',
    '{"id": 18446744073709551615}',
    '{"half": "\\ud800 and text"}',
    '{"score": NaN}',
    '{"score": 1e400}',
    '{"twice": 1, "twice": 2}',
    '{"text": "\\u0000\x7f"}',
    "[" * 300 + "]" * 300,
]


def both(text):
    return OfOpenSearch().loads(text), OfElasticsearch().loads(text.encode())


@pytest.mark.parametrize("text", OUT_OF_THE_ORDINARY, ids=lambda text: text[:20])
def test_what_is_out_of_the_ordinary_is_read_as_before(text):
    assert [repr(value) for value in both(text)] == [repr(json.loads(text))] * 2


@given(VALUES)
def test_every_value_is_read_as_by_the_standard_library(value):
    text = json.dumps(value)
    assert [repr(found) for found in both(text)] == [repr(json.loads(text))] * 2


@pytest.mark.parametrize("text", ['{"hits": [', "<html>busy</html>", '{"took": 1,}'])
def test_what_is_no_json_is_refused_as_before(text):
    with pytest.raises(json.JSONDecodeError):
        read_json(text)
    with pytest.raises(NotJsonEither):
        OfOpenSearch().loads(text)
    with pytest.raises(NotJson):
        OfElasticsearch().loads(text.encode())


def test_bytes_that_are_no_text_are_refused_as_before():
    with pytest.raises(NotJson):
        OfElasticsearch().loads(b'{"a": "\xff"}')


@pytest.fixture
def listening() -> Iterator[Callable[..., str]]:
    """Start a server that answers everything alike, and remember what it was asked."""
    servers = ExitStack()

    def start(status: int, headers: dict[str, str], body: Any, asked: list[Any] | None = None) -> str:
        def answer(request: Request) -> Answer:
            if asked is not None:
                asked.append((request.path, dict(request.headers)))
            if isinstance(body, bytes):
                return status, {"Content-Type": "application/json", **headers}, body
            return as_json(body, status, headers)

        return servers.enter_context(answering(answer))

    with servers:
        yield start


ELASTIC = {"X-elastic-product": "Elasticsearch"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "product"),
    [
        (200, {}, {"version": {"distribution": "opensearch", "number": "3.8.0"}}, "opensearch"),
        (200, {}, {"version": {"number": "7.10.2"}, "tagline": "The OpenSearch Project: …"}, "opensearch"),
        (200, ELASTIC, {"version": {"number": "9.2.4"}}, "elasticsearch"),
        (405, ELASTIC, {"error": "Incorrect HTTP method"}, "elasticsearch"),
        (401, ELASTIC, {"error": {"type": "security_exception"}}, "elasticsearch"),
    ],
)
def test_each_product_is_known_by_its_answer(listening, status, headers, body, product):
    assert product_of(Connection((listening(status, headers, body),))) == product


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (401, b"Unauthorized", AuthenticationFailed, "Check user and password"),
        (200, b"<html>It works!</html>", EngineError, "neither as OpenSearch nor as Elasticsearch"),
        (200, {"version": "1"}, EngineError, "neither as OpenSearch nor as Elasticsearch"),
        (
            404,
            b"<html>404 nginx</html>",
            EngineError,
            r"nginx.* \(404\)\. Check the address, and its path",
        ),
        (404, b"", EngineError, "404"),
        (503, b"", EngineUnavailable, "Try again later"),
    ],
)
def test_whatever_else_answers_is_told(listening, status, body, error, said):
    with pytest.raises(error, match=said):
        open_engine(listening(status, {}, body))


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, {"version": "1"}),
        ({}, ["odd"]),
        ({"Content-Type": "text/html"}, b"<html>"),
        ({"Content-Type": "text/plain"}, b"hello"),
        ({}, b"{broken"),
    ],
)
def test_an_adapter_told_to_talk_to_something_else_says_so(listening, product, headers, body):
    with (
        closing(open_engine(f"{product}+{listening(200, headers, body)}")) as engine,
        pytest.raises(EngineError, match=r"check the address|is not Elasticsearch"),
    ):
        engine.info()


def test_a_refusal_that_is_cut_off_is_told_with_a_remedy(listening):
    url = listening(401, {"Transfer-Encoding": "chunked"}, b"9\r\nhalf")
    with pytest.raises(EngineUnavailable, match=r"does not answer: .*Check the address"):
        product_of(Connection((url,), timeout=5))


def test_credentials_and_prefix_are_sent_with_the_question(listening):
    asked: list[Any] = []
    url = listening(200, ELASTIC, {}, asked)
    product_of(Connection((f"{url}/prefix",), api_key="some-key"))
    ((path, headers),) = asked
    assert path == "/prefix/"
    assert headers["Authorization"] == "ApiKey some-key"


def test_the_next_address_is_asked_when_one_does_not_answer(listening):
    url = listening(200, ELASTIC, {})
    assert product_of(Connection(("http://127.0.0.1:1", url))) == "elasticsearch"


def test_what_is_said_is_not_asked():
    silent = ("http://127.0.0.1:1",)
    assert product_of(Connection(silent, product="opensearch")) == "opensearch"
    assert product_of(Connection(silent, aws_region="eu-west-1")) == "opensearch"


def test_certificates_that_can_not_be_read_are_told(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for field in ("ca_file", "client_cert"):
        for file in (tmp_path / "ca.pem", tmp_path / "absent.pem"):
            remedy = f"{file.name}: .*; give certificates and their keys as PEM files"
            with pytest.raises(ConfigError, match=remedy):
                product_of(Connection(("https://127.0.0.1:1",), **{field: str(file)}))


def test_the_authorities_of_the_system_are_read_for_https_alone(listening, monkeypatch):
    read: list[object] = []
    load = ssl.SSLContext.load_default_certs
    monkeypatch.setattr(
        ssl.SSLContext, "load_default_certs", lambda *given: (read.append(given), load(*given))[1]
    )
    url = listening(200, ELASTIC, {})
    assert product_of(Connection((url,))) == "elasticsearch"
    assert not read
    with pytest.raises(EngineUnavailable):
        product_of(Connection((url.replace("http://", "https://"),)))
    assert read


def test_a_server_without_tls_is_named_as_one(listening, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_RETRIES", "0")
    url = listening(200, {}, {}).replace("http://", "https://")
    with pytest.raises(EngineUnavailable, match="It speaks no TLS: write http:// instead of https://"):
        open_engine(url).close()
