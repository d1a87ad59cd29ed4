"""What the mode ``server`` asks of the plugin, and which of its answers it takes."""

import pytest

from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineError,
    EngineUnavailable,
    UnsupportedQuery,
)
from shinglefold.model.scheme import Scheme
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.server import ServerFolding
from shinglefold.rerank.request.fold_options import FoldOptions

SCHEME = Scheme().with_options(min_resemblance=0.83)
ABSENT = UnsupportedQuery(
    "x_content_parse_exception: [1:34] unable to parse SearchExtBuilder with name [dedup]: parser not found"
)
#: Of a server without any plugin that reads ``ext``.
NO_SECTIONS = UnsupportedQuery(
    "x_content_parse_exception: unknown named object category [org.opensearch.search.SearchExtBuilder]"
)


def steps_of(folding, mode="auto"):
    return folding.page("pages", {}, FoldOptions(mode=mode), IndexFacts(SCHEME, "_dedup"), sealed=False)


def end_of(send):
    with pytest.raises(StopIteration) as end:
        send()
    return end.value.value


def result_of(mode="auto", **told):
    steps = steps_of(ServerFolding(possible=True), mode)
    asked = next(steps).arguments[1]["ext"]["dedup"]
    answer = {"mode": "server", "scheme": SCHEME.id, "stopped_by": "page_full", "window": 200, **told}
    return asked, end_of(lambda: steps.send({"dedup": answer}))


def test_the_thresholds_of_the_search_decide_and_its_scheme():
    asked, page = result_of()
    assert (asked["min_resemblance"], asked["min_shared"]) == (0.83, 0)
    assert page["dedup"]["mode"] == "server"
    assert "sf9-0" in result_of(scheme="sf9-0")[1]


def test_a_page_that_a_small_window_cut_is_read_on_here():
    capped = {"stopped_by": "window_cap", "window": 49}
    assert "reads 49 hits" in result_of(**capped)[1]
    assert result_of("server", **capped)[1]["dedup"]["window"] == 49
    assert result_of(stopped_by="window_cap", window=1000)[1]["dedup"]["window"] == 1000


ERRORS = {
    "an error of the server": EngineError("null_pointer_exception (500)"),
    "a circuit breaker": EngineUnavailable("circuit_breaking_exception: [parent] Data too large (429)"),
    "no answer": EngineUnavailable("localhost does not answer: timed out"),
    "a malformed request": UnsupportedQuery("parsing_exception: unknown query [dedup] (400)"),
    "a field of our name": UnsupportedQuery("No mapping found for [dedup] in order to sort on (400)"),
    "another section": UnsupportedQuery(str(ABSENT).replace("[dedup]", "[dedup2]")),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_after_an_error_the_page_is_folded_here_and_the_plugin_is_asked_again(error):
    folding = ServerFolding(possible=True)
    for _ in range(2):
        steps = steps_of(folding)
        next(steps)
        assert end_of(lambda steps=steps: steps.throw(error)) == str(error)
    steps = steps_of(folding, "server")
    next(steps)
    with pytest.raises(type(error)):
        steps.throw(error)


@pytest.mark.parametrize("said", [ABSENT, NO_SECTIONS], ids=["others read ext", "none reads ext"])
def test_a_cluster_without_the_plugin_is_asked_no_more_for_a_minute(said):
    folding = ServerFolding(possible=True)
    steps = steps_of(folding)
    next(steps)
    assert "no plugin" in end_of(lambda: steps.throw(said))
    assert "no plugin" in end_of(lambda: next(steps_of(folding)))
    steps = steps_of(folding, "server")
    next(steps)
    with pytest.raises(ConfigError, match="no plugin"):
        steps.throw(said)


def test_wrong_credentials_are_told_at_once():
    steps = steps_of(ServerFolding(possible=True))
    next(steps)
    with pytest.raises(AuthenticationFailed):
        steps.throw(AuthenticationFailed("401"))
