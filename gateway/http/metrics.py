"""The counters of a gateway, for Prometheus."""

from contextlib import AbstractContextManager
from functools import cache

from shinglefold.errors import MissingExtra

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
except ModuleNotFoundError as _error:
    raise MissingExtra("gateway", "the gateway") from _error

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one gateway. Labels have no text that callers send."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "shinglefold_gateway_requests",
            "Requests by operation and outcome.",
            ("operation", "outcome"),
            registry=self._registry,
        )
        self._folded_hits = Counter(
            "shinglefold_gateway_folded_hits",
            "Hits that were folded into another one.",
            registry=self._registry,
        )
        self._failures = Counter(
            "shinglefold_gateway_failures",
            "Requests that the gateway could not answer, by kind.",
            ("kind",),
            registry=self._registry,
        )
        self._stages = Histogram(
            "shinglefold_gateway_seconds",
            "Seconds by stage of intercepted requests.",
            ("stage",),
            buckets=_SECONDS,
            registry=self._registry,
        )

        # Each look-up by labels takes as long as what is counted.
        self._outcome, self._stage = cache(self._requests.labels), cache(self._stages.labels)

    def stage(self, name: str) -> AbstractContextManager[object]:
        """Time a stage of a request."""
        return self._stage(name).time()

    def count(self, operation: str, outcome: str, folded: int = 0) -> None:
        """Count a request by its outcome, and the hits that were folded in its answer.

        Args:
            outcome: ``forwarded`` unchanged, ``folded``, ``unfolded`` though it was to be folded, or
                ``intercepted``, which sends it in another form.
        """
        self._outcome(operation, outcome).inc()
        self._folded_hits.inc(folded)

    def count_failure(self, kind: str) -> None:
        """Count a failure."""
        self._failures.labels(kind).inc()

    def text(self) -> bytes:
        """Return all of them in the text format of Prometheus."""
        return generate_latest(self._registry)
