"""The servers of the tests themselves: they end with the run, and where none can be had that is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.servers.choose import excused
from support.servers.java import java_home
from support.servers.kinds import Unavailable, all_kinds, kind
from support.servers.places import ROOT
from support.servers.waiting import answers

_STARTS = """
import time
from support.servers.choose import excused
from support.servers.kinds import kind
from support.servers.local import LocalServer
server = LocalServer(kind("opensearch-2"))
print(server.url, server.folder, flush=True)
time.sleep(600)
"""


def test_a_server_does_not_outlive_a_run_that_was_killed():
    with excused():
        java_home(*kind("opensearch-2").java)
    run = subprocess.Popen(
        [sys.executable, "-c", _STARTS],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    url, folder = run.stdout.readline().split()
    assert answers(url)
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    end = time.monotonic() + 20
    while (Path(folder).exists() or answers(url)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not answers(url)
    assert not Path(folder).exists()


def test_a_java_of_the_wrong_age_is_no_java():
    with pytest.raises(Unavailable, match="needs Java 98 to 99; installed: "):
        java_home(98, 99)


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_a_server_tests_are_skipped_but_fail_in_ci(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="Maven is not installed"), excused():
        raise Unavailable("Maven is not installed")


def test_the_matrix_names_each_server_once_and_its_version_everywhere():
    for name, one in all_kinds().items():
        assert name == f"{one.product}-{one.major}"
        assert one.artifact.endswith(f":{one.version}:zip")
        assert one.image.endswith(f":{one.version}")
    with pytest.raises(Unavailable, match="there are: opensearch-3"):
        kind("solr-9")
