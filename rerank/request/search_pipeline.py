"""What a search pipeline of OpenSearch means for the requests of a folded search.

Its request processors decide what is found, so windows go through them. Its response processors shape a page,
so only the hits of the page go through these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError

#: The key of a body, and its value that skips the pipeline of an index.
KEY, NONE = "search_pipeline", "_none"
#: Response processors that change each hit by itself. All others may remove hits, or change their order.
_EACH_HIT = ("rename_field", "split", "sort")
#: Raises the number of hits read, which folding chooses itself.
_OVERSAMPLE = "oversample"


@dataclass(frozen=True, slots=True)
class SearchPipeline:
    """The pipelines that stand for one of an index or a request.

    ``window``: of requests that find hits. ``hits``: of the request for the hits of a page and their members.
    ``page``: of a further request for the hits shown alone, which it may cut or reorder; None without one.
    """

    window: Any = NONE
    hits: Any = NONE
    page: JSON | None = field(default=None)

    @property
    def complete(self) -> Any:  # noqa: ANN401 - JSON
        """The pipeline of a window whose hits come with everything that is shown of them."""
        parts = [one for one in (self.window, self.hits) if one != NONE]
        return {key: value for one in parts for key, value in one.items()} or NONE

    @classmethod
    def of(cls, definition: Mapping[str, Any], name: str) -> "SearchPipeline":
        """Return what a definition means.

        Raises:
            ConfigError: a script may change any part of a request, so that a window can't be read.
        """
        requests = _processors(definition, "request_processors")
        if any("script" in one for one in requests):
            raise ConfigError(
                f"the search pipeline {name} has the request processor 'script', which may change how many "
                'hits a window has; name another pipeline ("search_pipeline": "_none" takes none)'
            )
        finding = {
            "request_processors": [one for one in requests if _OVERSAMPLE not in one],
            "phase_results_processors": _processors(definition, "phase_results_processors"),
        }
        responses = _processors(definition, "response_processors")
        each = [one for one in responses if one.keys() <= set(_EACH_HIT)]
        sampled = [one for one in requests if _OVERSAMPLE in one]
        return cls(
            {key: value for key, value in finding.items() if value} or NONE,
            {"response_processors": each} if each else NONE,
            {"request_processors": sampled, "response_processors": responses}
            if len(each) < len(responses)
            else None,
        )


def _processors(definition: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    return definition.get(name) or []
