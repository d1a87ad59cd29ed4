"""Every server passes the kit that the embedded engine passes."""

import pytest

from shinglefold.contracts.engine import Engine
from shinglefold.testing.engines.conformance import EngineConformance


class TestServer(EngineConformance):
    @pytest.fixture(autouse=True)
    def _order(self, engine: Engine) -> None:
        # The kit's indices have one shard, where a document's place is a total order.
        self.tiebreaker = engine.tiebreaker() or "_doc"

    def test_fulfils_the_contract(self, engine: Engine):
        assert isinstance(engine, Engine)
