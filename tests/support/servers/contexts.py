"""What searches hold open on a server."""

import time

from support.servers.admin import ask

#: Seconds, of which no point in time closes by itself.
_PATIENCE = 10.0


def open_contexts(url: str) -> int:
    """Return how many contexts a server holds for searches that go on."""
    nodes = ask(url, "GET", "/_nodes/stats/indices/search")["nodes"]
    return sum(node["indices"]["search"]["open_contexts"] for node in nodes.values())


def left_open(url: str, before: int) -> int:
    """Return how many more there are than before, once a server had time to let go of them.

    Shards that a page shows nothing of are let go of after it is answered.
    """
    end = time.monotonic() + _PATIENCE
    while (more := open_contexts(url) - before) > 0 and time.monotonic() < end:
        time.sleep(0.1)
    return more
