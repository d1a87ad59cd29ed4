"""The tutorial's commands for a server, run on real ones: pages are indexed, found and folded."""

import re

import pytest
from support.tutorial import PAGE, run, steps, write_files


@pytest.mark.newest
def test_the_commands_for_a_server_index_find_and_fold(server, engine, tmp_path):
    write_files(tmp_path)
    run(next(steps()).command, tmp_path)
    shown = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[-1]
    index, search, page = shown.replace("http://localhost:9200", server.url).splitlines()
    try:
        assert "166 indexed into site" in run(index, tmp_path)
        # What is found, and in which order, is the server's own; that it folds is not.
        assert "near-duplicates folded: " in run(search, tmp_path)
        printed = run(page, tmp_path)
        assert "    also on " in printed
        assert re.search(r"^\d+ hits, \d+ stories$", printed, re.MULTILINE)
    finally:
        if engine.index_exists("site"):
            engine.delete_index("site")
