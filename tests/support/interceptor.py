"""An interceptor without a network, and an engine that answers as a test says."""

import json

from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import Guard, VersionedDocument
from shinglefold.gateway import Interceptor
from shinglefold.gateway.rest import (
    RestRequest,
    RestResponse,
    Send,
    Tiebreaker,
    Work,
)
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.runtime.sans_io import run
from shinglefold.settings import Settings


def with_note(site, **note):
    mappings = site.engine.mappings("site")
    return {**mappings, "_meta": {"shinglefold": mappings["_meta"]["shinglefold"] | note}}


def reads(request):
    return isinstance(request, Call) and request.method == "read"


class Script:
    """An engine that knows one index, stores one document, and answers bulks as the test says."""

    def __init__(self, site, *statuses):
        self.site, self.statuses, self.sent, self.version = site, list(statuses), [], 0

    def __call__(self, request):
        if isinstance(request, Work):
            return request.function()
        if isinstance(request, Tiebreaker):
            return self.site.engine.tiebreaker()
        if reads(request):
            self.version += 1
            return [
                VersionedDocument(id_, {"title": f"version {self.version}"}, Guard(self.version, 1))
                for id_ in request.arguments[1]
            ]
        if isinstance(request, Call):
            return request.on(self.site.engine)
        assert isinstance(request, Send)
        self.sent.append(request.request)
        lines = [json.loads(line) for line in request.request.body.splitlines()]
        verbs = [verb for line in lines for verb in line if verb in ("index", "update", "delete", "create")]
        items = [{verb: {"_id": "1", "status": self.statuses.pop(0)}} for verb in verbs]
        return RestResponse(200, {"took": 1, "errors": False, "items": items})


def intercept(site, answer, path, body, *, always=False, dedup=None, **parameters):
    made = Interceptor(site.engine, FoldedSearch, IndexOptions(dedup=dedup), Settings(), always=always)
    return run(made.steps(RestRequest("POST", path, parameters, {}, body)), answer)


def lines(*values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
