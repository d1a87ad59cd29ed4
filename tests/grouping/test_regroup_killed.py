"""Kill a regrouping by SIGKILL: the next run resumes, and the result is the same."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from support.killed_regroup import checkpoint, killed, moments
from support.numbered import led_rightly, mappings, store, stored
from support.random_pages import COUNT

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping.regroup import regroup


def opened(folder: Path) -> EmbeddedEngine:
    """Return an engine for pages without searchable text."""
    return EmbeddedEngine(folder, lambda _: [])


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_a_killed_regrouping_ends_with_the_same_result(tmp_path: Path, seed):
    for name in ("calm", "killed"):
        with closing(opened(tmp_path / name)) as engine:
            engine.create_index("pages", mappings(), {})
            store(engine, "pages", range(COUNT))
    with closing(opened(tmp_path / "calm")) as engine:
        regroup(engine, "pages")
        calm = stored(engine, "pages")
    options, resumed = checkpoint(tmp_path), 0
    for moment in moments(seed):
        assert killed(partial(opened, tmp_path / "killed"), "pages", options, moment, seed)
        resumed += (tmp_path / "kept.json").exists()
    assert resumed > 0
    with closing(opened(tmp_path / "killed")) as engine:
        summary = regroup(engine, "pages", options)
        assert (summary.settled, summary.resumed) == (True, True)
        found = stored(engine, "pages")
    assert found == calm
    assert led_rightly(found)
