"""kill -9 while an index is regrouped: the next run goes on, and the result is the same."""

import multiprocessing
import random
from contextlib import closing
from pathlib import Path

from support.numbered import led_rightly, mappings, store, stored
from support.random_pages import COUNT

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.groups.regroup import RegroupOptions, regroup


def opened(folder: Path) -> EmbeddedEngine:
    """An engine for pages that have no text to search by."""
    return EmbeddedEngine(folder, lambda _: [])


def work(folder: Path, checkpoint: Path) -> None:
    import shinglefold.groups.regroup.run as run

    run._ALONE = 20
    with closing(opened(folder)) as engine:
        regroup(engine, "pages", RegroupOptions(checkpoint=checkpoint, requests_per_second=400))


def test_a_regrouping_killed_at_random_moments_ends_as_one_that_was_not(tmp_path: Path):
    for name in ("calm", "killed"):
        with closing(opened(tmp_path / name)) as engine:
            engine.create_index("pages", mappings(), {})
            store(engine, "pages", range(COUNT))
    with closing(opened(tmp_path / "calm")) as engine:
        regroup(engine, "pages")
        calm = stored(engine, "pages")
    checkpoint, chance = tmp_path / "kept.json", random.Random(11)
    cut_short = resumed = 0
    # Reading takes a second at this rate, writing another.
    for low, high in ((0.2, 0.6), (1.2, 1.9), (0.2, 0.6), (0.2, 0.5)):
        process = multiprocessing.get_context("fork").Process(
            target=work, args=(tmp_path / "killed", checkpoint)
        )
        process.start()
        process.join(chance.uniform(low, high))
        cut_short += process.is_alive()
        process.kill()
        process.join()
        resumed += checkpoint.exists()
    assert (cut_short, resumed > 0) == (4, True)
    with closing(opened(tmp_path / "killed")) as engine:
        summary = regroup(engine, "pages", RegroupOptions(checkpoint=checkpoint))
        assert (summary.settled, summary.resumed) == (True, True)
        found = stored(engine, "pages")
    assert found == calm
    assert led_rightly(found)
