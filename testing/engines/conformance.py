"""The conformance kit for engines: a class that pytest collects.

::

    from shinglefold.testing.engines.conformance import EngineConformance

    class TestMine(EngineConformance):
        @pytest.fixture()
        def engine(self):
            with closing(MyEngine()) as engine:
                yield engine

Each check creates a separate index and deletes it; its name begins with ``conformance-``.
"""

from shinglefold.testing.engines.searching import Groups, Hits, Pages, Queries
from shinglefold.testing.engines.writing import Indices, Writing


class EngineConformance(Writing, Indices, Queries, Pages, Hits, Groups):
    """The checks that every engine must pass, so that code for one engine works on all.

    A subclass defines the fixture ``engine``, and the ``tiebreaker`` if it is not ``_shard_doc``.
    """
