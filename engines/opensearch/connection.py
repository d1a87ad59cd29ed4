"""opensearch-py's own connections with less work a request."""

import logging
from typing import Any

from opensearchpy import Urllib3HttpConnection

from shinglefold.engines.http.quick_connection import quicken

_LOGS = tuple(map(logging.getLogger, ("opensearch", "opensearchpy.trace")))


class QuickHttpConnection(Urllib3HttpConnection):
    """Sends and reads as the client does, and hands answers over as the bytes they came in."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        quicken(self.pool)
        self.pool = _Pool(self.pool)


class _Pool:
    """A pool whose answers are not made text of: what reads their JSON takes bytes, and would undo it."""

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - urllib3's
        self._pool = pool

    def urlopen(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as urllib3 takes and returns them
        """Return the answer to a request."""
        response = self._pool.urlopen(*args, **kwargs)
        return _Undecoded(response) if _is_read_as_bytes(response) else response

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Undecoded:
    """A response as the client looks at it, whose data stay bytes where it would have them be text."""

    def __init__(self, response: Any) -> None:  # noqa: ANN401 - urllib3's
        self.status = response.status
        self.headers = response.headers
        self.data = self
        self._bytes = response.data

    def decode(self, *_: object) -> bytes:
        """Return the data."""
        return self._bytes  # type: ignore[no-any-return]


def _is_read_as_bytes(response: Any) -> bool:  # noqa: ANN401 - urllib3's
    """Tell whether nobody but our serializer looks at what a response holds."""
    return (
        response.status == 200
        and response.headers.get("content-type", "").startswith("application/json")
        and not any(log.isEnabledFor(logging.DEBUG) for log in _LOGS)
    )
