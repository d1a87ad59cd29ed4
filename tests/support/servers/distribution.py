"""Get a server from Maven Central and unpack it, once."""

import os
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from support.servers.fold_plugin import FOLDER, linked, state
from support.servers.kinds import Kind, Unavailable
from support.servers.places import cache

_TIMEOUT = 900
#: The only module that no OpenSearch starts without.
_HTTP = "transport-netty4"


def distribution(kind: Kind) -> Path:
    """Return the folder of a server's distribution; the first call downloads it (60 to 160 MB)."""
    home = cache() / kind.home
    if FOLDER in kind.plugins:
        others = tuple(plugin for plugin in kind.plugins if plugin != FOLDER)
        bare = distribution(replace(kind, plugins=others))
        return linked(bare, home.with_name(f"{home.name}-{state()}"), kind.version)
    if kind.minimal:
        return _minimal(distribution(replace(kind, minimal=False)), home)
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as part:
            _unpack(_download(kind.artifact, Path(part)), Path(part))
            made = Path(part, kind.folder)
            for plugin in kind.plugins:
                # As the server's own tool lays it out, which would want the network for it.
                _unpack(_download(plugin, Path(part)), made / "plugins" / plugin.split(":")[1])
            if kind.library:
                _without_modules(made / "plugins" / kind.plugins[0].split(":")[1], kind, Path(part))
            _move(made, home)
    return home


def _minimal(whole: Path, home: Path) -> Path:
    """Return a distribution with one module: hard links to the files of the whole one."""
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=home.parent) as part:
            made = Path(part, "made")
            shutil.copytree(whole, made, copy_function=_link)
            for module in (made / "modules").iterdir():
                if module.name != _HTTP:
                    shutil.rmtree(module)
            _move(made, home)
    return home


def _link(file: str, place: str) -> None:
    try:
        os.link(file, place)
    except OSError:
        # Not every file system has hard links.
        shutil.copy2(file, place)


def _without_modules(plugin: Path, kind: Kind, part: Path) -> None:
    """Let a plugin start where the distribution lacks the modules that it extends: it gets their library."""
    shutil.copy(_download(kind.library, part), plugin)
    for path in plugin.glob("*.jar"):
        path.chmod(0o644)
    descriptor = plugin / "plugin-descriptor.properties"
    lines = descriptor.read_text("utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("extended.plugins=")]
    descriptor.write_text("\n".join(kept) + "\n", "utf-8")


def _download(artifact: str, folder: Path) -> Path:
    maven = shutil.which("mvn")
    if not maven:
        raise Unavailable("no Docker engine runs, and Maven (mvn) is not installed to fetch a server with")
    copy = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        run = subprocess.run(
            [maven, "-q", "-B", *copy], check=False, capture_output=True, text=True, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Maven did not get {artifact} in {_TIMEOUT} s") from error
    if run.returncode:
        said = next((line for line in run.stdout.splitlines() if "ERROR" in line), run.stderr)
        raise Unavailable(f"Maven can't get {artifact}: {said}")
    _, name, version, form = artifact.split(":")
    return folder / f"{name}-{version}.{form}"


def _unpack(file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as zipped:
        for member in zipped.infolist():
            path = Path(zipped.extract(member, folder))
            program = path.is_dir() or member.external_attr >> 16 & 0o100
            # Under root the server runs as another user, who must be able to read all this.
            path.chmod(0o755 if program else 0o644)


def _move(folder: Path, home: Path) -> None:
    """Put a finished folder in its place, unless another run was faster."""
    folder.parent.chmod(0o755)
    try:
        folder.rename(home)
    except OSError:
        if not home.exists():
            raise
