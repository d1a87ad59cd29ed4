"""What the installed client says of a server of another generation; `test_generations.py` runs it there."""

import os
import subprocess
import sys

_SEARCH = """
import sys
from shinglefold.engines import open_engine
open_engine(sys.argv[1]).search("shinglefold-absent", {})
"""


def test_the_installed_client_says_that_another_generation_is_needed(server, report):
    # Without the folder of the client that these tests run with.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-c", _SEARCH, server.url],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    error = run.stderr.splitlines()[-1]
    assert error.startswith("shinglefold.errors.EngineError: ")
    assert "install its own" in error
    report.append("installed client: refused")
