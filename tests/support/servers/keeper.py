"""Run a server and end it with whoever wanted it; a script of its own, without imports from the project.

A server must not outlive a test run that was killed. So it is a child of this script, which ends it when its
own standard input closes (the run is over, in whatever way), or when the file ``alive`` in the server's
folder is gone (``make engine-down``). Then it removes the folder.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_TICK = 0.3


def main(order: dict[str, Any]) -> int:
    """Run the server of an order: command, env, cwd, folder, user (or None) and whether input is watched."""
    folder = Path(order["folder"])
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    if order["watched"]:
        threading.Thread(target=_until_closed, args=(over,), daemon=True).start()
    with (folder / "output").open("ab") as output:
        server = subprocess.Popen(
            order["command"],
            cwd=order["cwd"],
            env=order["env"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **_as_user(order["user"]),
        )
    (folder / "pid").write_text(str(server.pid))
    while server.poll() is None and (folder / "alive").exists() and not over.wait(_TICK):
        pass
    died = server.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    if died is None:
        shutil.rmtree(folder, ignore_errors=True)
    return died or 0


def _until_closed(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def _as_user(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
