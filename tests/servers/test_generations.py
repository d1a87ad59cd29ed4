"""Servers of another generation than the installed client: this folder again, with their own client."""

import os
import subprocess
import sys

import pytest
from support.servers.choose import NAMES, excused, is_older, wanted_elsewhere
from support.servers.generations import client_folder
from support.servers.kinds import kind
from support.servers.places import ROOT

#: What is about servers of its own, or about none.
_OF_OTHERS = (
    *("cluster", "security"),
    *(f"test_{name}.py" for name in ("fixture", "generations", "secured", "trials_counted")),
)
#: Where an older client and server take the path of the newest Elasticsearch, and OpenSearch 2 has its own.
_AS_THE_NEWEST = (
    "test_seq_no.py",
    *(f"topology/test_{name}.py" for name in ("scan", "searches")),
)
#: With what is about servers of another generation only.
_FILES = ("-o", "python_files=test_*.py installed_client.py")


# It is hundreds of tests, of which each ends by itself when it hangs.
@pytest.mark.timeout(2_700)
@pytest.mark.parametrize("name", wanted_elsewhere())
def test_a_server_of_another_generation_passes_with_its_own_client(name, report):
    with excused():
        folder = client_folder(kind(name))
    beside = [f"--ignore=tests/servers/{name}" for name in (*_OF_OTHERS, *_AS_THE_NEWEST)]
    chosen = ["-m", "not newest"] if is_older(name) else []
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/servers", *_FILES, *beside, *chosen],
        cwd=ROOT,
        env={**os.environ, NAMES: name, "PYTHONPATH": str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )
    lines = run.stdout.splitlines()
    failed = "\n".join(line for line in lines if line.startswith(("FAILED", "ERROR", "E  ")))
    assert run.returncode == 0, failed[-5000:] + run.stderr[-2000:]
    told = [line.removeprefix("server ") for line in lines if line.startswith(f"server {name}: ")]
    assert len(told) == 1, run.stdout
    assert "server installed client: refused" in lines, run.stdout
    report.append(f"{told[0]}: {lines[-1]}")
    report += [line.removeprefix("server ") for line in lines if line.startswith("server trials: ")]
