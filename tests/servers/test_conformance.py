"""Every server passes the kit that the embedded engine passes."""

from typing import ClassVar

import pytest

from shinglefold.contracts import Engine
from shinglefold.testing.engine import EngineConformance


class TestServer(EngineConformance):
    def test_fulfils_the_contract(self, engine: Engine):
        assert isinstance(engine, Engine)
