"""A server as a local Java process in a folder of its own."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.servers.admin import answers, ask, until
from support.servers.distribution import distribution
from support.servers.java import java_home
from support.servers.kinds import Kind
from support.servers.places import cache, runs
from support.servers.security import Certificates, Door, Security, certificates_in

#: Servers refuse to run as root; every Unix has this user.
_USER = "nobody"
#: Little work to start, as tests want it.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
#: A small heap whose metaspace does not grow by one collection of the whole heap after another.
_SMALL = f"-Xms512m -Xmx512m -XX:MetaspaceSize=192m -XX:-AlwaysPreTouch -XX:+UseSerialGC {_QUICK}"
#: Benchmarks want a server as it is shipped: ``SHINGLEFOLD_TEST_JVM="-Xms1g -Xmx1g"``.
_AS_SHIPPED = os.environ.get("SHINGLEFOLD_TEST_JVM")
#: Options of the distributions that tests go without: two collectors are refused, and the agent of
#: OpenSearch 3 rewrites each class that is loaded, a third of the work of a start.
_LEFT_OUT = ("UseG1GC", "G1ReservePercent", "InitiatingHeapOccupancyPercent", "-javaagent:")
#: Parsed classes, which are a third of the work of a start: all servers of a version share them.
_ARCHIVE = "classes.jsa"


class LocalServer:
    """A server that ends with this process, or, when detached, with the file ``alive`` in its folder.

    Args:
        security: for a server that asks who is there.
        port: 0 takes a free one.
        settings: over those of a server that stands alone; a value of None takes one of them out.
        wait: whether it must answer before this returns; ``wait_until_up`` waits later.
    """

    def __init__(
        self,
        kind: Kind,
        security: Security | None = None,
        port: int = 0,
        detached: bool = False,
        settings: Mapping[str, object] | None = None,
        wait: bool = True,
    ) -> None:
        self.kind = kind
        self.how = "local process"
        self._home = distribution(kind)
        self._java = java_home(*kind.java)
        self._port = port or free_port()
        self._security = security
        self._detached = detached
        self._keeper: subprocess.Popen[bytes] | None = None
        self._again: Mapping[str, object] = {}
        self.folder = _folder(kind, detached)
        try:
            self._configure(settings or {})
            self.start(wait)
            if security:
                security.after_start(self.ask)
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        return f"{'https' if self._security else 'http'}://127.0.0.1:{self._port}"

    @property
    def certificates(self) -> Certificates:
        assert self._security is not None
        return certificates_in(self.folder / "config")

    @property
    def runs(self) -> bool:
        return self._keeper is not None and self._keeper.poll() is None

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask it as its administrator, past all clients."""
        return ask(self.url, method, path, body, self._door())

    def start(self, wait: bool = True) -> None:
        """Start it, or start it again after ``kill``."""
        (self.folder / "alive").touch()
        with (self.folder / "output").open("ab") as output:
            self._keeper = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("keeper.py")), json.dumps(self._order())],
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                # Not this process's own: whoever reads them would wait for the keeper's end.
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        if wait:
            self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until it answers; fail with its last words where it does not."""
        until(lambda: answers(self.url, self._door()), self._keeper, self.folder / "output")

    def kill(self) -> None:
        """End it as ``kill -9`` does; its data stay."""
        assert self._keeper is not None
        pid = int((self.folder / "pid").read_text())
        if self.kind.product == "opensearch":
            # Its script starts Java three times to find this out, which is a fifth of the work of a start.
            # Elasticsearch is started by another Java, which tells it more than its command says.
            self._again = as_it_runs(pid) or self._again
        os.killpg(pid, signal.SIGKILL)
        self._keeper.wait()

    def archive_classes(self) -> None:
        """Let it end by itself, which archives its classes, and keep those for all later servers."""
        assert self._keeper is not None
        os.kill(int((self.folder / "pid").read_text()), signal.SIGTERM)
        self._keeper.wait()
        # If another process had them before this server began, it read those.
        if (made := self.folder / _ARCHIVE).exists():
            with tempfile.TemporaryDirectory(dir=cache()) as part:
                Path(shutil.copy(made, part)).replace(_archive(self.kind))

    def stop(self) -> None:
        """End it and remove its folder; a second call does nothing."""
        (self.folder / "alive").unlink(missing_ok=True)
        if self._keeper is not None:
            if self._keeper.stdin:
                self._keeper.stdin.close()
            self._keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _order(self) -> dict[str, object]:
        return {
            "command": [str(self._home / "bin" / self.kind.product)],
            "env": self._environment(),
            "cwd": str(self.folder),
            "folder": str(self.folder),
            "user": _user(),
            "watched": not self._detached,
            **self._again,
        }

    def _environment(self) -> dict[str, str]:
        prefix = "ES" if self.kind.product == "elasticsearch" else "OPENSEARCH"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            f"{prefix}_JAVA_HOME": str(self._java),
            f"{prefix}_JAVA_OPTS": self._options() if _AS_SHIPPED is None else _AS_SHIPPED,
            f"{prefix}_PATH_CONF": str(self.folder / "config"),
            f"{prefix}_TMPDIR": str(self.folder / "tmp"),
            # Of the Java that starts Elasticsearch and takes a third of the work of it.
            "CLI_JAVA_OPTS": _QUICK,
        }

    def _options(self) -> str:
        if (archive := _archive(self.kind)).exists():
            return f"{_SMALL} -XX:SharedArchiveFile={archive}"
        if self.kind.minimal:
            return f"{_SMALL} -XX:ArchiveClassesAtExit={self.folder / _ARCHIVE}"
        return _SMALL

    def _door(self) -> Door:
        return self._security.door(self.folder / "config") if self._security else Door()

    def _configure(self, more: Mapping[str, object]) -> None:
        config = self.folder / "config"
        shutil.copytree(self._home / "config", config)
        settings = {**_settings(self.kind, self.folder, self._port), **more}
        if self._security:
            settings |= self._security.set_up(config)
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items() if value is not None]
        (config / f"{self.kind.product}.yml").write_text("".join(lines))
        options = config / "jvm.options"
        # The garbage collector's log would go into the distribution's folder, which the server can't write.
        left_out = ("-Xlog:gc", *(_LEFT_OUT if _AS_SHIPPED is None else ()))
        kept = [
            line
            for line in options.read_text().splitlines(keepends=True)
            if not any(option in line for option in left_out)
        ]
        # What the agent would bring, without which OpenSearch 3 does not start.
        agent = self._home.glob("agent/opensearch-agent-bootstrap-*.jar") if _AS_SHIPPED is None else ()
        kept += [f"-Xbootclasspath/a:{jar}\n" for jar in agent]
        options.write_text("".join(kept))
        _hand_over(self.folder)


def minimal(kind: Kind) -> Kind:
    """Return what starts again with a third of the work, for tests that kill servers and need no module.

    The first call archives its classes. Elasticsearch takes none away and reads no archive.
    """
    if kind.product != "opensearch":
        return kind
    made = replace(kind, minimal=True)
    if not _archive(kind).exists() and _AS_SHIPPED is None:
        server = LocalServer(made)
        try:
            server.archive_classes()
        finally:
            server.stop()
    return made


def _archive(kind: Kind) -> Path:
    return cache() / f"{kind.folder}-{java_home(*kind.java).name}.jsa"


def _folder(kind: Kind, lasting: bool) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"{kind.name}-", dir=runs(lasting)))
    (folder / "tmp").mkdir()
    return folder


def _settings(kind: Kind, folder: Path, port: int) -> dict[str, object]:
    common: dict[str, object] = {
        "cluster.name": kind.name,
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": free_port(),
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "cluster.routing.allocation.disk.threshold_enabled": False,
        "cluster.info.update.interval": "10s",
        # So that a test need not wait a minute until a point in time is seen to have run out.
        "search.keep_alive_interval": "1s",
    }
    if kind.product == "opensearch":
        # No point in time lives shorter than this.
        return {**common, "point_in_time.init.keep_alive": "1s"}
    return {**common, "xpack.security.enabled": False}


def _user() -> str | None:
    return _USER if os.geteuid() == 0 else None


def _hand_over(folder: Path) -> None:
    if user := _user():
        for path in [folder, *folder.rglob("*")]:
            shutil.chown(path, user)


def as_it_runs(pid: int) -> Mapping[str, object]:
    """Return the command, the environment and the folder of a process, to start another like it.

    Nothing where they are not told.
    """
    process = Path("/proc", str(pid))
    try:
        command = _split((process / "cmdline").read_bytes())
        variables = _split((process / "environ").read_bytes())
        folder = os.readlink(process / "cwd")
    except OSError:
        return {}
    env = dict(variable.split("=", 1) for variable in variables)
    return {"command": command, "env": env, "cwd": folder} if command else {}


def _split(data: bytes) -> list[str]:
    return [os.fsdecode(part) for part in data.split(b"\0")[:-1]]


def free_port() -> int:
    """Return a port nobody listens on, and which no outgoing connection takes while its server is away.

    Systems choose the ports of outgoing connections from 32768 on.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with contextlib.closing(socket.socket()) as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


__all__ = ["LocalServer", "as_it_runs", "free_port", "minimal"]
