"""Build our plugin for OpenSearch, once for each state of its sources and version of the server."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from support.servers import places
from support.servers.java import java_home
from support.servers.kinds import Unavailable

#: The folder of its sources, and its name among the plugins of a server.
FOLDER = "opensearch-plugin"
_SOURCES = places.ROOT / FOLDER
_JAVA = (21, 25)
_TIMEOUT = 600


@cache
def state() -> str:
    """Return a short hash of the sources that the plugin is made of."""
    made = hashlib.sha256()
    for path in sorted([_SOURCES / "pom.xml", *_SOURCES.glob("src/main/**/*")]):
        if path.is_file():
            made.update(str(path.relative_to(_SOURCES)).encode() + b"\0" + path.read_bytes())
    return made.hexdigest()[:10]


def plugin_zip(version: str) -> Path:
    """Return the plugin's zip for a version of OpenSearch; a new state of its sources is compiled.

    Its Java tests run with the build for the version of the pom.
    """
    kept = places.cache() / "plugins" / f"opensearch-shinglefold-{version}-{state()}.zip"
    if not kept.exists():
        maven = shutil.which("mvn")
        if not maven:
            raise Unavailable("Maven (mvn) is not installed to build the plugin with")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, FOLDER)
            shutil.copytree(_SOURCES, copy, ignore=shutil.ignore_patterns("target"))
            shutil.copy(places.ROOT / "LICENSE", folder)
            _build(maven, copy, version)
            kept.parent.mkdir(exist_ok=True)
            (made,) = copy.glob("target/*.zip")
            shutil.move(made, kept)
    return kept


def _build(maven: str, folder: Path, version: str) -> None:
    command = [maven, "-q", "-B", f"-Dmaven.repo.local={places.cache() / 'maven'}", "package"]
    if f"<opensearch.version>{version}<" not in (folder / "pom.xml").read_text("utf-8"):
        command += [f"-Dopensearch.version={version}", "-Dmaven.test.skip=true"]
    environment = {**os.environ, "JAVA_HOME": str(java_home(*_JAVA))}
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Maven did not build the plugin in {_TIMEOUT} s") from error
    # What does not compile is a failure, not a server that can't be had.
    assert not run.returncode, run.stdout[-3000:]


def linked(base: Path, home: Path, version: str) -> Path:
    """Return a distribution with the plugin: hard links to the files of the bare one."""
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=home.parent) as part:
            made = Path(part, "made")
            shutil.copytree(base, made, copy_function=os.link)
            plugin = made / "plugins" / "opensearch-shinglefold"
            shutil.unpack_archive(plugin_zip(version), plugin)
            for path in [plugin, *plugin.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            made.rename(home)
    return home
