"""What the mode ``server`` asks of the plugin, and which of its answers it takes."""

from shinglefold.model.scheme import Scheme
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.server import ServerFolding
from shinglefold.rerank.request.fold_options import FoldOptions

SCHEME = Scheme().with_options(min_resemblance=0.83)


def result_of(scheme):
    steps = ServerFolding(possible=True).page(
        "pages", {}, FoldOptions(mode="auto"), IndexFacts(SCHEME, "_dedup"), sealed=False
    )
    asked = next(steps).arguments[1]["ext"]["dedup"]
    try:
        steps.send({"dedup": {"mode": "server", "scheme": scheme}})
    except StopIteration as end:
        return asked, end.value
    raise AssertionError


def test_the_thresholds_of_the_search_decide_and_its_scheme():
    asked, page = result_of(SCHEME.id)
    assert (asked["min_resemblance"], asked["min_shared"]) == (0.83, 0)
    assert page["dedup"]["mode"] == "server"
    assert "sf9-0" in result_of("sf9-0")[1]
