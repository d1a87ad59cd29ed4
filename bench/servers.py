"""The stage on a real server, beside the server's own means: indexing, disk, pages of results, pairs folded.

``SHINGLEFOLD_TEST_URL`` names the server; let its JVM compile fully, as servers do:
``SHINGLEFOLD_TEST_JVM="-Xms1g -Xmx1g" make engine-up`` (without it the server is quick to start instead).
Where others use the machine too, only figures of one run compare.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from bench import corpora
from bench.server_folds import folds
from bench.server_indices import Site
from bench.server_pages import latency
from bench.server_rates import throughput
from bench.storage import URL
from bench.table import Row
from shinglefold.engines import open_engine

CORPORA = ("libreoffice-ru", "libreoffice-zh-cn")


def measure() -> list[Row]:
    """Return the figures for each corpus; nothing where there is none, or no server is named."""
    if not os.environ.get(URL):
        return []
    return [row for corpus in filter(corpora.available, CORPORA) for row in _measured(corpus)]


def _measured(corpus: str) -> Iterator[Row]:
    with closing(open_engine(os.environ[URL])) as engine:
        info = engine.info()
        site = Site(engine, corpus)
        try:
            rows = [*throughput(site), *site.growth(), *latency(site), *folds(site)]
        finally:
            site.delete()
    server = f"{info['distribution']} {info['version']}"
    for row in rows:
        yield replace(row, name=f"{corpus}: {row.name}", note=f"{row.note}; {server}" if row.note else server)
