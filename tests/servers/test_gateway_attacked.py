"""Hostile requests to a gateway: it answers or closes, tells nobody what is another's, and is well afterwards."""

import pytest
from support.fuzz.gateway import hostile_requests
from support.fuzz.run import throw

#: Others are thrown by `make fuzz ARGS="--only gateway"`.
SEED = 20261127


@pytest.mark.newest
def test_no_hostile_request_breaks_the_gateway_or_sees_what_is_anothers(server, tmp_path):
    with hostile_requests(server.url, tmp_path / "log") as target:
        (told,) = throw({"gateway": target.throw}, 300, SEED)
    assert told.broken == ()
