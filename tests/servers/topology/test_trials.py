"""Random searches on every layout: pages and cursors show what folding the complete list shows."""

import pytest
from support.hits import split
from support.servers.lines import line
from support.topologies import NAMES, laid_out
from support.trials import documents, properties, run_trials, specs, walk_disturbed

from shinglefold.engines.embedded import EmbeddedEngine

#: On each layout of each server; every run has other seeds.
TRIALS, WALKS = 15, 4


@pytest.mark.parametrize("topology", NAMES)
def test_pages_and_cursors_show_what_the_complete_list_folds_to(engine, server, report, topology, first):
    with laid_out(topology, engine, server, documents(specs(first)), properties()) as place:
        run_trials(engine, place, first, TRIALS)
        report.append(line(TRIALS, f"{topology} of {engine.info()['version']}", first))


def test_in_the_embedded_engine_too(tmp_path, report, first):
    with (
        EmbeddedEngine(tmp_path / "site", split) as engine,
        laid_out("one_shard", engine, None, documents(specs(first)), properties()) as place,
    ):
        run_trials(engine, place, first, TRIALS)
        report.append(line(TRIALS, "the embedded engine", first))


@pytest.mark.newest
@pytest.mark.parametrize("topology", NAMES)
def test_while_others_write_and_delete_no_group_comes_twice(engine, server, topology, first):
    made = specs(first)
    with laid_out(topology, engine, server, documents(made), properties()) as place:
        walk_disturbed(engine, place, made, first, WALKS)
