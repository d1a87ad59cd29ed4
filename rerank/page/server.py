"""Pages that our plugin folds inside OpenSearch, in the shape of pages folded by window."""

import re
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import AuthenticationFailed, ConfigError, EngineError, UnsupportedQuery, quote
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.request.fold_options import FoldOptions, Preference, Scope
from shinglefold.rerank.request.url_parameters import KEY as PIPELINE

#: Seconds after which a cluster without the plugin is asked again.
_ABSENT_SECONDS = 60.0
_ABSENT = "the cluster has no plugin for ext.dedup"
#: The most hits that the plugin reads.
_MOST = 1000
#: The beginning of the plugin's error for a request that it does not support.
_REFUSED = "the plugin does not take"
#: The errors of a cluster without the plugin: one with other sections of ``ext``, and one with none.
_UNKNOWN = re.compile(
    rf"unable to parse SearchExtBuilder with name \[{KEY}\]: parser not found"
    r"|unknown named object category \[[\w.]+\.SearchExtBuilder\]"
)
_USUAL = FoldOptions()
#: Options that the plugin takes with their default alone.
_ONLY_USUAL = (
    "linkage", "explain", "cursor", "renew", "inner_hits", "facets", "members_from", "member_source",
)  # fmt: skip
#: Options that go to the plugin as they are.
_PLAIN = ("members", "window", "max_window")


class ServerFolding:
    """Asks a cluster to fold by itself.

    Args:
        possible: whether the engine has search pipelines at all.
    """

    def __init__(self, *, possible: bool) -> None:
        self._possible = possible
        self._absent = -_ABSENT_SECONDS

    def page(
        self, index: str | None, body: JSON, options: FoldOptions, facts: IndexFacts, *, sealed: bool
    ) -> Steps[JSON | str]:
        """Return a page that the plugin folded, or the reason why it can't.

        Raises:
            ConfigError: the mode is ``server``, and the plugin can't.
        """
        reasons = list(self._obstacles(index, body, options, facts, sealed=sealed))
        if not reasons:
            request = {**body, "ext": {**body.get("ext", {}), KEY: _options_of(options, facts)}}
            try:
                answer: JSON = yield Call("search", (index, request))
            except AuthenticationFailed:
                raise
            except EngineError as error:
                if options.mode == "server" and not _is_refusal(error):
                    raise
                reasons = [self._reason(error)]
            else:
                told = answer.get(KEY, {})
                reason = _shortfall(told, options, facts)
                if not reason:
                    return answer
                reasons = [reason]
        if options.mode == "server":
            raise ConfigError(
                'mode "server" is not possible here; change the request, or give mode "window": '
                + "; ".join(reasons)
            )
        return "; ".join(reasons)

    def _obstacles(
        self, index: str | None, body: JSON, options: FoldOptions, facts: IndexFacts, *, sealed: bool
    ) -> Iterator[str]:
        if not self._possible:
            yield "the engine has no search pipelines"
        if options.mode == "auto" and monotonic() - self._absent < _ABSENT_SECONDS:
            yield _ABSENT
        if index is None:
            yield "a point in time is read by the client"
        if sealed:
            yield "the index is sealed"
        if facts.mismatch is not None:
            yield str(facts.mismatch)
        if facts.pipeline or PIPELINE in body:
            yield "there is a search pipeline"
        for name in _ONLY_USUAL:
            if getattr(options, name) != getattr(_USUAL, name):
                yield f"{_REFUSED} {name} {quote(getattr(options, name))}"
        if options.verify == "text" or options.max_window > _MOST:
            yield f"{_REFUSED} verify by text, or max_window above {_MOST}"

    def _reason(self, error: EngineError) -> str:
        """Return why the cluster did not fold. An invalid request fails again in the next mode."""
        if not _lacks_plugin(error):
            return str(error)
        self._absent = monotonic()
        return _ABSENT


def _is_refusal(error: EngineError) -> bool:
    """Return whether a cluster lacks the plugin, or its plugin does not take the request."""
    return isinstance(error, UnsupportedQuery) and (_REFUSED in str(error) or _lacks_plugin(error))


def _lacks_plugin(error: EngineError) -> bool:
    return _UNKNOWN.search(str(error)) is not None


def _shortfall(told: JSON, options: FoldOptions, facts: IndexFacts) -> str:
    """Return why to fold a page here that the plugin answered; empty if its page is good."""
    if told.get("mode") != "server":
        return str(told.get("mode_reason", "the cluster did not fold the page"))
    if told.get("scheme") != facts.scheme.id:
        return f"the plugin folded by the scheme {told.get('scheme')}"
    ended = options.mode == "auto" and told["stopped_by"] == "window_cap"
    if ended and told["window"] < options.max_window:
        return f"the plugin reads {told['window']} hits of this search at most"
    return ""


def _options_of(options: FoldOptions, facts: IndexFacts) -> JSON:
    """Return options as the plugin reads them, with thresholds, which the id of a scheme does not include."""
    least, matcher = options.min_resemblance, Matcher.of(facts.scheme, options)
    return {
        **{name: getattr(options, name) for name in _PLAIN},
        "min_resemblance": facts.scheme.decision.min_resemblance if least is None else least,
        "min_shared": matcher.min_shared,
        "min_length_ratio": matcher.min_length_ratio,
        "representative": list(map(_policy, options.representative)),
        "scope": list(map(_scope, options.scope)),
    }


def _policy(one: Preference) -> Mapping[str, Any]:
    given = {"field": one.field, "values": list(one.values)}
    return {one.name: {name: value for name, value in given.items() if value}}


def _scope(one: Scope) -> Mapping[str, Any]:
    return {"field": one.field} | ({} if one.within is None else {"within": f"{one.within:.9f}s"})
