"""Connections from a file and the environment."""

import pytest

from shinglefold.engines import load_connection
from shinglefold.errors import ConfigError

URL = "http://localhost:9200"


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
        "SHINGLEFOLD_ENGINE_URL": URL,
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
        "SHINGLEFOLD_ENGINE_URL": URL,
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
        "SHINGLEFOLD_ENGINE_URL": URL,
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
        "SHINGLEFOLD_ENGINE_URL": URL,
        "SHINGLEFOLD_ENGINE_API_KEY_FILE": str(tmp_path / "secret"),
    }
    with pytest.raises(ConfigError, match=said) as caught:
        load_connection(environ=environ)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_file_of_a_connection_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_bytes(b"\xef\xbb\xbf" + f'url = "{URL}"\r\n'.encode())
    assert load_connection(file=file, environ={}).urls == (URL,)


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
    file.write_text(f'url = "{URL}"\n{text}\n')
    with pytest.raises(ConfigError, match=said) as caught:
        load_connection(file=file, environ={})
    assert "hidden" not in str(caught.value)
    assert "12345" not in str(caught.value)


def test_wrong_names_and_values_in_the_environment_are_told():
    with pytest.raises(ConfigError, match="did you mean 'timeout'"):
        load_connection(URL, environ={"SHINGLEFOLD_ENGINE_TIMEOUTS": "1"})
    with pytest.raises(ConfigError, match="SHINGLEFOLD_ENGINE_VERIFY: expected true or false, got 'perhaps'"):
        load_connection(URL, environ={"SHINGLEFOLD_ENGINE_VERIFY": "perhaps"})
    with pytest.raises(ConfigError, match="no address"):
        load_connection(environ={})
    with pytest.raises(ConfigError, match="No such file or directory; check it"):
        load_connection(URL, file="/no/such/file.toml", environ={})
