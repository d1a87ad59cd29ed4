"""Requests to Amazon OpenSearch Service are signed as AWS documents (Signature Version 4)."""

import hashlib
import hmac
from contextlib import closing
from http.server import ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from support.serving import Quiet, serving

from shinglefold.engines import Connection, open_engine
from shinglefold.errors import ConfigError

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-west-1"


@pytest.fixture
def recorded(monkeypatch):
    """A server that takes every request down, and an environment with credentials for it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    requests = []
    answer = b'{"hits": {"hits": []}}'

    class Handler(Quiet):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
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
    key = f"AWS4{SECRET}".encode()
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
    assert SECRET not in str(headers)


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
