"""The conformance kit for engines: a class that pytest collects.

::

    from shinglefold.testing.engine import EngineConformance

    class TestMine(EngineConformance):
        @pytest.fixture()
        def engine(self):
            with closing(MyEngine()) as engine:
                yield engine

Each check makes an index of its own and deletes it; its name begins with ``conformance-``.
"""

from shinglefold.testing.engine_groups import Groups
from shinglefold.testing.engine_hits import Hits
from shinglefold.testing.engine_indices import Indices
from shinglefold.testing.engine_pages import Pages
from shinglefold.testing.engine_queries import Queries
from shinglefold.testing.engine_writing import Writing


class EngineConformance(Writing, Indices, Queries, Pages, Hits, Groups):
    """What every engine must do alike, so that whatever is built on one works on all.

    A subclass gives the fixture ``engine``, and the ``tiebreaker`` where it is not ``_shard_doc``.
    """
