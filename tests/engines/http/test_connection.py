"""Connections: what can be meant, where their settings come from, and what proves who asks."""

import base64
import hashlib
import hmac
import pickle
import traceback
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from support.serving import answering, as_json

from shinglefold.engines import load_connection, open_engine
from shinglefold.engines.http.connection import (
    Connection,
    each_with_scheme,
    is_server,
    looks_like_server,
    parse_urls,
    printable_address,
)
from shinglefold.errors import ConfigError

URL = ("https://search.example.org:9200",)


def decoded(header):
    kind, proof = header.split(" ", 1)
    return kind, base64.b64decode(proof).decode()


def test_each_way_to_prove_who_asks_makes_its_header():
    assert Connection(URL).authorization() == ""
    assert decoded(Connection(URL, user="ada", password="pä:ss").authorization()) == ("Basic", "ada:pä:ss")
    assert decoded(Connection(URL, api_key="some-id:some-key").authorization()) == (
        "ApiKey",
        "some-id:some-key",
    )
    assert Connection(URL, api_key="c29tZS1pZA==").authorization() == "ApiKey c29tZS1pZA=="
    assert Connection(URL, bearer_token="abc").authorization() == "Bearer abc"
    assert Connection(URL, aws_region="eu-west-1").authorization() == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"urls": ()}, "no address"),
        ({"urls": ("ftp://host",)}, "not the address of a server"),
        ({"urls": ("http://",)}, "not the address of a server"),
        ({"urls": ("http://host:port",)}, "not the address of a server"),
        ({"urls": ("http://[host",)}, "not the address of a server"),
        ({"urls": ("http://host?x=1",)}, "not the address of a server"),
        ({"product": "opensearsh"}, "did you mean 'opensearch'"),
        ({"user": "ada"}, "user and password belong together"),
        ({"user": "ada", "password": "hidden", "api_key": "hidden"}, "give one of user and api_key"),
        ({"bearer_token": "hidden", "aws_region": "x"}, "give one of bearer_token and aws_region"),
        ({"client_key": "key.pem"}, "client_key without client_cert"),
        ({"aws_region": "x", "product": "elasticsearch"}, "only OpenSearch takes signed requests"),
        ({"timeout": 0.0}, "timeout .*above 0, at most 1000000, got 0.0"),
        ({"timeout": float("inf")}, "timeout .*at most 1000000, got inf"),
        ({"retries": -1}, "retries: .*at least 0, got -1"),
    ],
)
def test_what_can_not_be_meant_is_refused_without_telling_secrets(wrong, said):
    with pytest.raises(ConfigError, match=said) as caught:
        Connection(**{"urls": URL, **wrong})
    assert "hidden" not in str(caught.value)


def test_secrets_show_in_no_representation_but_survive_pickling():
    connection = Connection(URL, user="ada", password="hidden")
    assert "hidden" not in f"{connection} {connection!r} {connection.address}"
    assert pickle.loads(pickle.dumps(connection)) == connection
    for field in ("api_key", "bearer_token"):
        assert "hidden" not in repr(Connection(URL, **{field: "hidden"}))


@pytest.mark.parametrize("field", ["api_key", "bearer_token"])
@pytest.mark.parametrize("secret", ["hid\u2013den", "hidden\n", "hid den"])
def test_a_key_that_no_header_can_have_is_refused_without_showing_it(field, secret):
    """The standard library and the clients raise errors that quote the whole header."""
    with pytest.raises(
        ConfigError, match=f"{field} has a character that no key has.*copy it again"
    ) as caught:
        Connection(URL, **{field: secret})
    assert "hid" not in str(caught.value)
    assert decoded(Connection(URL, api_key="id:hid\u2013den").authorization())[1] == "id:hid\u2013den"


@pytest.mark.parametrize(
    "url", ["http://one..two:9200", f"http://{'x' * 64}.example:9200", "http://\u200bone:9200"]
)
def test_a_host_that_can_not_be_looked_up_is_no_address(url):
    for product in ("", "opensearch+", "elasticsearch+"):
        with pytest.raises(ConfigError, match="is not the address of a server"):
            open_engine(product + url)


def test_a_path_is_percent_encoded():
    with pytest.raises(ConfigError, match="percent-encoded, as in http://one:9200/s%C3%BCd/a"):
        open_engine("http://ada:hidden@one:9200/s\u00fcd/a")
    assert Connection(("http://one:9200/s%C3%BCd", "http://b\u00fccher.example")).urls


def test_addresses_are_taken_apart():
    assert parse_urls("http://localhost:9200/") == {"urls": ("http://localhost:9200",)}
    assert parse_urls("opensearch+https://ada:p%40ss@one:9200/prefix, https://two:9200") == {
        "product": "opensearch",
        "user": "ada",
        "password": "p@ss",
        "urls": ("https://one:9200/prefix", "https://two:9200"),
    }


def test_a_comma_in_a_password_ends_no_address():
    given = "http://ada:hid,den@one:9200,http://two:9200"
    assert parse_urls(given)["password"] == "hid,den"
    assert parse_urls(given)["urls"] == ("http://one:9200", "http://two:9200")
    with pytest.raises(ConfigError) as caught:
        parse_urls("http://ada:hid,den@one:9200,two:9200")
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://one:9200,two:9200", "http://one:9200,http://two:9200"),
        ("https://one:9200/, two:9200/", "https://one:9200/,https://two:9200/"),
        ("http://one,two", "http://one,http://two"),
        ("opensearch+https://ada:hid,den@one/a,[::1]:9200", "opensearch+https://one/a,https://[::1]:9200"),
        ("http://one,two:9200,http://three", "http://one,http://two:9200"),
        ("one:9200,two:9200", "http://one:9200,http://two:9200"),
    ],
)
def test_addresses_of_which_only_the_first_has_a_scheme_are_told_as_they_were_meant(given, meant):
    with pytest.raises(ConfigError) as caught:
        open_engine(given)
    assert f"each with its scheme: {meant}" in str(caught.value) or f"({meant})" in str(caught.value)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize("given", ["http://one/a,b", "http://ada:hid,den@one:9200", "http://one,http://two"])
def test_a_comma_elsewhere_makes_no_second_address(given):
    assert each_with_scheme("http://one:9200") is None
    assert all("," not in url.partition("/a")[0] for url in parse_urls(given)["urls"])


@pytest.mark.parametrize(
    "given",
    [
        "http://ada:hidden@one:9200,http://bob:hidden@two:9200",
        "http://ada:hidden@one:9200,http://ada:other@two:9200",
        "opensearch+http://one:9200,elasticsearch+http://two:9200",
    ],
)
def test_addresses_that_name_different_users_or_products_are_refused(given):
    with pytest.raises(ConfigError, match="name it once") as caught:
        parse_urls(given)
    assert "hidden" not in str(caught.value)
    assert parse_urls("http://ada:p@one:9200,http://ada:p@two:9200")["user"] == "ada"


@pytest.mark.parametrize(
    "address", ["https://ada:hid/den@host", "https://ada:hid#den@host", "https://ada:h@[x"]
)
def test_a_password_that_breaks_an_address_is_not_shown(address):
    with pytest.raises(ConfigError, match="percent-encoded") as caught:
        Connection(**parse_urls(address))
    assert "hid" not in str(caught.value)
    assert "ada" not in str(caught.value)


def test_a_server_is_told_from_a_folder():
    for server in ("http://x", "https://x", "opensearch+http://x", "elasticsearch+https://x:1/y"):
        assert is_server(server)
    for folder in ("pages", "/data/http", "embedded:pages", "./https:/x", "file:///x"):
        assert not is_server(folder)


SECRET = [
    "ftp://ada:hidden@host",
    "//ada:hidden@host:9200",
    "ada:hidden@host:9200",
    "http://host:9200?token=hidden",
    "https://host:9200/#hidden",
    "https://ada:hid?hidden@host:port",
    "opensearch+https://ada:hid/hidden@host/path?x=hidden",
    "http://ada:hidden@[host",
]


@pytest.mark.parametrize("address", SECRET)
def test_no_form_of_an_address_shows_its_secret(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "hidden" not in printable_address(address)
    with pytest.raises(ConfigError) as caught:
        open_engine(address)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    # The line of this test that made the call is part of a traceback, and holds no address.
    assert "hidden" not in told
    assert "host" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_was_meant_as_a_server_is_told_from_a_folder():
    for address in ("localhost:9200", "ftp://x", "//x", "ada:pass@x", "10.0.0.1:9200/prefix", "[::1]:9200"):
        assert looks_like_server(address)
    for folder in ("pages", "/data/a:b", "./localhost:9200", "pages@2024", "C-run", "data.2024", "~/x@y:z"):
        assert not looks_like_server(folder)
    assert printable_address("localhost:9200") == "localhost:9200"
    assert printable_address("ftp://ada:hidden@x/y") == "ftp://x/y"


ADDRESS = "http://localhost:9200"


def test_the_environment_wins_over_the_file_and_the_address_given_over_both(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_text(
        'url = ["http://one:1", "http://two:2"]\nuser = "ada"\npassword = "from-file"\ntimeout = 5\n'
    )
    environ = {"SHINGLEFOLD_ENGINE_FILE": str(file), "SHINGLEFOLD_ENGINE_PASSWORD": "from-environment"}
    connection = load_connection(environ=environ)
    assert connection.urls == ("http://one:1", "http://two:2")
    assert (connection.user, connection.password, connection.timeout) == ("ada", "from-environment", 5.0)
    assert load_connection("http://three:3", environ=environ).urls == ("http://three:3",)
    assert load_connection(file=file, environ={}).password == "from-file"


def test_every_field_can_be_said_in_the_environment():
    environ = {
        "SHINGLEFOLD_ENGINE_URL": ADDRESS,
        "SHINGLEFOLD_ENGINE_API_KEY": "key",
        "SHINGLEFOLD_ENGINE_VERIFY": "false",
        "SHINGLEFOLD_ENGINE_TIMEOUT": "2.5",
        "SHINGLEFOLD_ENGINE_RETRIES": "7",
        "SHINGLEFOLD_ENGINE_CA_FILE": "ca.pem",
        "SHINGLEFOLD_ENGINE_PRODUCT": "opensearch",
        "SHINGLEFOLD_PRESET": "not of a connection",
    }
    connection = load_connection(environ=environ)
    assert (connection.api_key, connection.verify, connection.timeout, connection.retries) == (
        "key",
        False,
        2.5,
        7,
    )
    assert (connection.ca_file, connection.product) == ("ca.pem", "opensearch")


def test_secrets_are_read_from_files_of_their_own(tmp_path):
    (tmp_path / "secret").write_text("hidden\n")
    environ = {
        "SHINGLEFOLD_ENGINE_URL": ADDRESS,
        "SHINGLEFOLD_ENGINE_BEARER_TOKEN_FILE": str(tmp_path / "secret"),
    }
    assert load_connection(environ=environ).bearer_token == "hidden"
    environ["SHINGLEFOLD_ENGINE_BEARER_TOKEN_FILE"] = str(tmp_path / "absent")
    with pytest.raises(ConfigError, match="No such file or directory; make it readable"):
        load_connection(environ=environ)


@pytest.mark.parametrize(
    "written", [b"hidden", b"hidden\r\n", b"\xef\xbb\xbfhidden", b"\xef\xbb\xbf hidden\r\n"]
)
@pytest.mark.parametrize("name", ["password", "api_key", "bearer_token"])
def test_a_secret_may_be_saved_by_an_editor_of_windows(tmp_path, written, name):
    (tmp_path / "secret").write_bytes(written)
    environ = {
        "SHINGLEFOLD_ENGINE_URL": ADDRESS,
        f"SHINGLEFOLD_ENGINE_{name.upper()}_FILE": str(tmp_path / "secret"),
        **({"SHINGLEFOLD_ENGINE_USER": "ada"} if name == "password" else {}),
    }
    assert getattr(load_connection(environ=environ), name) == "hidden"


@pytest.mark.parametrize(
    ("written", "said"), [("hidden".encode("utf-16"), "is not in UTF-8: save it so"), (b"\r\n", "is empty")]
)
def test_a_file_without_a_readable_secret_is_refused_without_quoting_it(tmp_path, written, said):
    (tmp_path / "secret").write_bytes(written)
    environ = {
        "SHINGLEFOLD_ENGINE_URL": ADDRESS,
        "SHINGLEFOLD_ENGINE_API_KEY_FILE": str(tmp_path / "secret"),
    }
    with pytest.raises(ConfigError, match=said) as caught:
        load_connection(environ=environ)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_file_of_a_connection_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_bytes(b"\xef\xbb\xbf" + f'url = "{ADDRESS}"\r\n'.encode())
    assert load_connection(file=file, environ={}).urls == (ADDRESS,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('passwort = "hidden"', "did you mean 'password'"),
        ("password = 12345", "password .*expected a string, got a whole number"),
        ('timeout = "hidden"', "timeout .*expected a number, got a string"),
        ('password = "hidden', "no TOML"),
    ],
)
def test_a_file_that_can_not_be_meant_is_refused_without_quoting_it(tmp_path, text, said):
    file = tmp_path / "engine.toml"
    file.write_text(f'url = "{ADDRESS}"\n{text}\n')
    with pytest.raises(ConfigError, match=said) as caught:
        load_connection(file=file, environ={})
    assert "hidden" not in str(caught.value)
    assert "12345" not in str(caught.value)


def test_wrong_names_and_values_in_the_environment_are_told():
    with pytest.raises(ConfigError, match="did you mean 'timeout'"):
        load_connection(ADDRESS, environ={"SHINGLEFOLD_ENGINE_TIMEOUTS": "1"})
    with pytest.raises(ConfigError, match="SHINGLEFOLD_ENGINE_VERIFY: expected true or false, got 'perhaps'"):
        load_connection(ADDRESS, environ={"SHINGLEFOLD_ENGINE_VERIFY": "perhaps"})
    with pytest.raises(ConfigError, match="no address"):
        load_connection(environ={})
    with pytest.raises(ConfigError, match="No such file or directory; check it"):
        load_connection(ADDRESS, file="/no/such/file.toml", environ={})


AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-west-1"


@pytest.fixture
def recorded(monkeypatch):
    """A server that takes every request down, and an environment with credentials for it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS_SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    requests = []

    def answer(request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        requests.append((request.path, headers, request.body))
        return as_json({"hits": {"hits": []}})

    with answering(answer) as url:
        yield url, requests


def signature(path, headers, body, signed, date):
    """Compute a signature from a request as it arrived."""
    canonical = [
        "POST",
        urlsplit(path).path,
        urlsplit(path).query,
        *(f"{name}:{headers[name].strip()}" for name in signed),
        "",
        ";".join(signed),
        hashlib.sha256(body).hexdigest(),
    ]
    scope = f"{date[:8]}/{REGION}/es/aws4_request"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{AWS_SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_a_search_carries_a_signature_that_aws_would_compute_too(recorded):
    url, requests = recorded
    with closing(open_engine(Connection((url,), aws_region=REGION))) as engine:
        engine.search("pages", {"query": {"match_all": {}}})
    ((path, headers, body),) = requests
    kind, rest = headers["authorization"].split(" ", 1)
    parts = dict(part.split("=", 1) for part in rest.replace(" ", "").split(","))
    signed = parts["SignedHeaders"].split(";")
    assert kind == "AWS4-HMAC-SHA256"
    assert parts["Credential"].startswith("AKIDEXAMPLE/")
    assert {"host", "x-amz-date"} <= set(signed)
    assert parts["Signature"] == signature(path, headers, body, signed, headers["x-amz-date"])
    assert AWS_SECRET not in str(headers)


def test_without_credentials_it_says_what_to_set(monkeypatch, tmp_path):
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigError, match="set AWS_ACCESS_KEY_ID"):
        open_engine(Connection(("http://127.0.0.1:1",), aws_region=REGION))


def test_elasticsearch_takes_no_signed_requests():
    with pytest.raises(ConfigError, match="only OpenSearch"):
        Connection(("http://127.0.0.1:1",), product="elasticsearch", aws_region=REGION)
