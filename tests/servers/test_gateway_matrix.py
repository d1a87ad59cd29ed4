"""Requests of every kind, sent as bytes to a server and to a gateway before it: the same, or listed.

Reads go to one index twice. Writes go to two that are alike, one directly and one by the gateway.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from support.distinct import index_documents_that_differ
from support.rest.raw import Connection, Request
from support.rest.reads import FORMS, OPERATIONS, Row
from support.rest.sameness import unlike
from support.rest.writes import BULKS, DOCUMENTS
from support.servers.admin import ask
from support.servers.server import add_alias

import shinglefold

pytestmark = pytest.mark.newest

#: The gateway says what it did not sign.
_WARNED = "header warning: None became '299 shinglefold"
#: The gateway refuses a document itself, in the engine's shape, and without what only the engine knows.
_REFUSED = ("illegal_argument_exception", "header x-opensearch-version", "header x-opaque-id")
#: What is not the same where an index has a recipe, and why; docs/gateway.md has the same list. By the row:
#: parts of what is told of it. Where no index has one, nothing differs.
DIFFERENCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Answers to signed writes are read, so they are in JSON; those that name a format keep it.
        "document: accept yaml": ("application/yaml", "body '---"),
        # Half of a surrogate pair is no character: it is stored as U+FFFD, as by `shinglefold index`.
        "document: half a pair": ("\\ud83d",),
        "document: a metadata field": _REFUSED,
        # Elasticsearch takes it; the gateway reads JSON.
        "document: sent as YAML": (_WARNED,),
        # Elasticsearch repeats the document that it refuses, and its fingerprint with it.
        "document: a key twice": ("_dedup",),
        "document: numbers": ("_dedup",),
        # What the server changes, or makes of a script, has another text than the one that was signed.
        "document: a missing pipeline": (_WARNED,),
        "document: update by a script": (_WARNED,),
        "document: reindex": (_WARNED,),
        "bulk: a key twice": ("_dedup",),
        "bulk: a missing pipeline": (_WARNED,),
        "bulk: a script": (_WARNED,),
        # The answer to updates is put together of several ones, for which all of each is needed.
        "bulk: filter_path": ('body \'{"errors"',),
        "bulk: filter_path of ids": ('body \'{"items"',),
    }
)
READS = {**{f"form: {name}": row for name, row in FORMS.items()}, **OPERATIONS}
WRITES = {
    **{f"document: {name}": row for name, row in DOCUMENTS.items()},
    **{f"bulk: {name}": row for name, row in BULKS.items()},
}
SEARCHES = json.loads(Path(__file__).with_name("requests.json").read_text())
_WRITTEN: Any = {
    "properties": {"title": {"type": "text"}, "body": {"type": "text"}, "number": {"type": "long"}}
}
_PREFIX = "shinglefold-test-matrix"


@dataclass(frozen=True)
class Places:
    """The addresses, and the names of the indices for each of them; ``exact``: no index has a recipe."""

    urls: tuple[str, str]
    read: Mapping[str, str]
    written: tuple[Mapping[str, str], Mapping[str, str]]
    exact: bool


@pytest.fixture(scope="module", params=["recipe", "no recipe"])
def places(request, server, engine, gateway, scheme, canonicalizer) -> Iterator[Places]:
    signed = request.param == "recipe"
    begin = f"{_PREFIX}-{'signed' if signed else 'plain'}"
    read = {
        "INDEX": f"{begin}-read",
        "SECOND": f"{begin}-second",
        "ALIAS": f"{begin}-alias",
        "NONE": f"{begin}-none",
    }
    written = ({"INDEX": f"{begin}-d"}, {"INDEX": f"{begin}-g"})
    made = (
        *read.values(),
        *(f"{names['INDEX']}{more}" for names in written for more in ("", "-stream", "-new")),
    )
    gone = f"/{','.join(name for name in made if name != read['ALIAS'])}?ignore_unavailable=true"
    ask(server.url, "DELETE", gone)
    for first, name in ((0, read["INDEX"]), (100, read["SECOND"])):
        index_documents_that_differ(engine, name, 1, scheme, canonicalizer, first=first, signed=signed)
    add_alias(server, read["ALIAS"], read["INDEX"], filter={"range": {"number": {"gte": 6}}})
    for names in written:
        engine.create_index(names["INDEX"], _WRITTEN, {"number_of_shards": 1, "number_of_replicas": 0})
        if signed:
            shinglefold.setup(server.url, names["INDEX"], text=["title", "body"], languages=[])
    read["PIT"] = engine.open_pit(read["INDEX"], "5m")
    yield Places((server.url, gateway.url), read, written, not signed)
    engine.close_pit(read["PIT"])
    ask(server.url, "DELETE", gone)


def _as_a_caller(request: Request) -> Request:
    """Return a request with a name of its own: OpenSearch warns each caller of what is old only once."""
    return replace(request, headers={"X-Opaque-Id": f"caller-{uuid.uuid4().hex}", **request.headers})


def check(
    name: str, row: Row, places: Places, names: tuple[Mapping[str, str], Mapping[str, str]], exact: bool
) -> None:
    steps = [row] if isinstance(row, Request) else list(row)
    taken: tuple[dict[str, str], dict[str, str]] = ({}, {})
    found = []
    last: Any = ()
    with Connection(places.urls[0]) as direct, Connection(places.urls[1]) as through:
        for step in steps:
            if isinstance(step, Request):
                last = [
                    connection.ask(_as_a_caller(step.renamed({**own, **values})))
                    for connection, own, values in zip((direct, through), names, taken, strict=True)
                ]
                found += [
                    f"{step.method} {step.target}: {one}" for one in unlike(*last, step.method, names, exact)
                ]
            elif last[0].status == 200:
                for values, answer in zip(taken, last, strict=True):
                    values[step[0]] = answer.json[step[1]]
    listed = () if exact else DIFFERENCES.get(name, ())
    left = [one for one in found if not any(part in one for part in listed)]
    assert not left, "\n".join(left)


@pytest.mark.parametrize("name", READS)
def test_what_reads_is_answered_as_by_the_server(places, name):
    check(name, READS[name], places, (places.read, places.read), True)


@pytest.mark.parametrize("name", WRITES)
def test_what_writes_is_answered_as_by_the_server(places, name):
    check(name, WRITES[name], places, places.written, places.exact)


@pytest.mark.parametrize("group", SEARCHES)
def test_bodies_of_searches_are_answered_as_by_the_server(places, group):
    for name, case in SEARCHES[group].items():
        if name == "profile":
            # It has hundreds of times.
            continue
        body, parameters, index = [*case, *({}, "INDEX")[len(case) - 1 :]]
        at = "/_search" if index is None else f"/{quote(index, safe=',*')}/_search"
        written = {key: str(one).lower() if isinstance(one, bool) else one for key, one in parameters.items()}
        row = Request("POST", f"{at}?{urlencode(written)}", body)
        check(f"{group}: {name}", row, places, (places.read, places.read), True)
