"""Who gets into an OpenSearch that asks, and what whoever does not is told."""

import logging
import traceback
from contextlib import closing

import pytest

from shinglefold.engines import open_engine
from shinglefold.errors import AuthenticationFailed, EngineUnavailable, PermissionDenied

PRODUCTS = pytest.mark.parametrize("product", ["", "opensearch"])


@PRODUCTS
@pytest.mark.parametrize("name", ["chief", "reader", "writer", "tests"])
def test_a_user_gets_in_by_password_or_by_certificate(connection, users, site, name, product):
    with closing(open_engine(connection(users[name], product=product))) as engine:
        assert engine.info()["distribution"] == "opensearch"
        if name != "writer":
            assert engine.search("public-pages", {})["hits"]["total"]["value"] == 60


@PRODUCTS
@pytest.mark.parametrize(
    "wrong",
    [
        {"password": "Wrong-password-1"},
        {"user": "nobody-at-all"},
        {"user": "", "password": ""},
        {"user": "", "password": "", "bearer_token": "Some-token-1"},
    ],
)
def test_whoever_the_server_does_not_know_stays_outside(connection, users, site, caplog, product, wrong):
    caplog.set_level(logging.DEBUG)
    given = connection(users["reader"], product=product, **wrong)
    with (
        pytest.raises(AuthenticationFailed, match="Check user and password, API key or token") as caught,
        closing(open_engine(given)) as engine,
    ):
        engine.search("public-pages", {})
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(caught.value) + repr(given)
    for secret in ("Wrong-password-1", "Some-token-1", users["reader"].password):
        assert secret not in told


@PRODUCTS
@pytest.mark.parametrize("authority", ["", "stranger"])
def test_a_server_of_an_authority_nobody_named_is_not_spoken_to(
    connection, users, secured, product, authority
):
    ca_file = str(secured.certificates.stranger) if authority else ""
    with (
        pytest.raises(EngineUnavailable, match=r"certificate.*ca_file"),
        closing(open_engine(connection(users["reader"], product=product, ca_file=ca_file))) as engine,
    ):
        engine.search("public-pages", {})


def test_a_certificate_of_another_authority_is_not_let_in(connection, users, secured, tmp_path):
    import trustme

    client = tmp_path / "client.pem"
    trustme.CA().issue_cert(
        "tests@example.org", common_name="tests"
    ).private_key_and_cert_chain_pem.write_to_path(str(client))
    given = connection(users["tests"], client_cert=str(client), product="opensearch")
    with (
        pytest.raises((EngineUnavailable, AuthenticationFailed), match=r"certificates|Check user"),
        closing(open_engine(given)) as engine,
    ):
        engine.search("public-pages", {})


def test_a_missing_right_is_named_with_the_remedy(engine_of, users, site):
    reader, writer = engine_of(users["reader"]), engine_of(users["writer"])
    for refused, right in (
        (lambda: reader.search("secret-pages", {}), "indices:data/read/search"),
        (lambda: reader.open_pit("secret-pages"), "indices:data/read/point_in_time/create"),
        (lambda: reader.delete_index("public-pages"), "indices:admin/delete"),
        (
            lambda: reader.bulk([{"_index": "public-pages", "_id": "x", "_source": {}}]),
            "indices:data/write/bulk",
        ),
        (lambda: writer.search("public-pages", {}), "indices:data/read/search"),
    ):
        with pytest.raises(PermissionDenied, match="Ask for a role that allows it") as caught:
            refused()
        assert right in str(caught.value)
