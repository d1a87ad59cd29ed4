"""The servers of the tests themselves: they end with the run, and where none can be had that is told."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.servers.admin import answers
from support.servers.choose import excused
from support.servers.distribution import distribution
from support.servers.java import java_home
from support.servers.kinds import Unavailable, all_kinds, kind
from support.servers.local import as_it_runs
from support.servers.places import ROOT, cache

_STARTS = """
import time
from support.servers.choose import excused
from support.servers.kinds import kind
from support.servers.local import LocalServer
server = LocalServer(kind("opensearch-2"), wait=False)
print(server.folder, flush=True)
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
    folder = Path(run.stdout.readline().strip())
    # A server that is still starting has processes to end as one that answers has, and takes far less time.
    assert _within(20, lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    group = int((folder / "pid").read_text())
    assert _runs(group)
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert _within(20, lambda: not _runs(group) and not folder.exists())


def _runs(group: int) -> bool:
    """Tell whether a process group has a process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def own_cache() -> Iterator[dict[str, str]]:
    """An environment in which no other server was started by hand."""
    name = "opensearch-2"
    with excused():
        java_home(*kind(name).java)
        home = distribution(kind(name))
    folder = Path(tempfile.mkdtemp(prefix="by-hand-", dir=cache()))
    (folder / "engines").mkdir()
    (folder / "engines" / home.name).symlink_to(home)
    for made in (folder, folder / "engines"):
        made.chmod(0o755)
    yield {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "SHINGLEFOLD_CACHE": str(folder)}
    shutil.rmtree(folder)


def test_a_server_started_by_hand_stays_until_it_is_stopped(own_cache):
    def by_hand(*arguments):
        command = [sys.executable, "-m", "support.servers", *arguments]
        return subprocess.run(command, env=own_cache, check=False, capture_output=True, text=True)

    up = by_hand("up", "opensearch-2")
    assert up.returncode == 0, up.stderr
    url = re.search(r"http://[\d.:]+", up.stdout)[0]
    assert answers(url)
    again = by_hand("up", "opensearch-2")
    assert (again.returncode, url in again.stdout) == (1, True)
    assert url in by_hand("down").stdout
    assert _within(20, lambda: not answers(url))
    assert "no server runs" in by_hand("down").stdout


def _within(seconds: float, told: Callable[[], object]) -> bool:
    end = time.monotonic() + seconds
    while not (found := told()) and time.monotonic() < end:
        time.sleep(0.2)
    return bool(found)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system tells nothing about a process")
def test_a_process_tells_how_it_runs(tmp_path):
    command = ["sh", "-c", "echo here; read -r line"]
    env = {"PATH": os.environ["PATH"], "EMPTY": "", "LONG": "a=b c\nd"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=env, cwd=tmp_path, **pipes) as run:
        assert run.stdout.readline() == b"here\n"
        found = as_it_runs(run.pid)
    assert found == {"command": command, "env": env, "cwd": str(tmp_path)}
    assert as_it_runs(run.pid) == {}


def test_a_java_of_the_wrong_age_is_no_java():
    with pytest.raises(Unavailable, match="needs Java 98 to 99; installed: "):
        java_home(98, 99)


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_a_server_tests_are_skipped_but_fail_in_ci(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="Maven is not installed"), excused():
        raise Unavailable("Maven is not installed")


def test_the_matrix_names_each_server_once_and_its_version_everywhere():
    pom = (ROOT / "opensearch-plugin" / "pom.xml").read_text("utf-8")
    for name, one in all_kinds().items():
        assert one.apart or name == f"{one.product}-{one.major}"
        # Our own is built here, for the version of each server.
        fetched = [plugin for plugin in one.plugins if plugin != "opensearch-plugin"]
        assert all(f":{one.version}.0:zip" in plugin for plugin in fetched)
        assert name != "opensearch-plugin" or f"<opensearch.version>{one.version}<" in pom
        assert one.artifact.endswith(f":{one.version}:zip")
        assert one.image.endswith(f":{one.version}")
    with pytest.raises(Unavailable, match="there are: opensearch-3"):
        kind("solr-9")
