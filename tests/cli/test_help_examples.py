"""The examples in the help run as they are typed."""

import contextlib
import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import trustme
from support.commands import json_lines

from shinglefold.cli.main import cli, main


def _with_subcommands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for below, subcommand in getattr(command, "commands", {}).items():
        yield from _with_subcommands(f"{name} {below}", subcommand)


_EXAMPLES = [
    (name, line)
    for top, command in cli.commands.items()
    for name, one in _with_subcommands(top, command)
    for line in getattr(one, "examples", ())
]
#: What the examples read, by the words they use for it.
_PIPELINE = {"processors": [{"supershingle": {"fields": ["title", "body"], "target_field": "_dedup"}}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, examples_file) -> Path:
    """A folder with every file the examples name, and an index."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copy(examples_file, place / "articles.jsonl.gz")
    shutil.copy(examples_file, place / "pages.jsonl.gz")
    lines = gzip.decompress(examples_file.read_bytes()).decode("utf-8").splitlines()
    page = json.loads(lines[0])
    (place / "documents.jsonl").write_text("\n".join(lines[:3]), "utf-8")
    (place / "draft.txt").write_text(page["body"], "utf-8")
    (place / "published.html").write_text(f"<p>{page['body']}</p>", "utf-8")
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"id": ["a", "b", "c"], "text": [page["body"], "few words", page["body"]]})
    pytest.importorskip("pyarrow.parquet").write_table(table, place / "pages.parquet")
    row = f'{page["title"]},"{page["body"]}","{page["body"]}"\n'
    (place / "dump.csv").write_text(f"page_id,title,body,text\n1,{row}2,{row}", "utf-8")
    (place / "pipeline.json").write_text(json.dumps(_PIPELINE))
    (place / "failed.jsonl").write_text(
        json.dumps({"reason": "x", "stage": "index", "line": 1, "source": "x", "document": page}) + "\n"
    )
    (place / "site").mkdir()
    for number, line in enumerate(lines[:4]):
        (place / "site" / f"page-{17 + number}.txt").write_text(json.loads(line)["body"], "utf-8")
    assert _ran("shinglefold sign pages.parquet --field text -o signed.parquet", place).returncode == 0
    # The index comes first: other examples search it.
    assert _ran("shinglefold index articles.jsonl.gz", place).returncode == 0
    site = "shinglefold index - --index site --id-field name"
    named = "".join(json.dumps({"name": f"page-{n}", "body": page["body"]}) + "\n" for n in (17, 18))
    assert _ran(site, place, named).returncode == 0
    old = "shinglefold index - --index old"
    assert _ran(old, place, named).returncode == 0
    dated = named.replace("}\n", ', "published_at": "2026-11-20"}\n')
    assert _ran("shinglefold index - --index articles --groups", place, dated).returncode == 0
    assert _ran("shinglefold index documents.jsonl --index library --passages", place).returncode == 0
    new = json.dumps({"id": "new", "host": "a.org", "body": " ".join(f"word{n}" for n in range(50))}) + "\n"
    (place / "new.jsonl").write_text(new, "utf-8")
    (place / "feed.jsonl.gz").write_bytes(gzip.compress(new.encode()))
    return place


def _served(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a gateway or pages at a free port until it listens, and end it."""
    pytest.importorskip("uvicorn")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
    # No browser is opened.
    words = [word for word in words if word not in ("--listen", "0.0.0.0:9201", "127.0.0.1:9000", "--open")]
    program = Path(sys.executable).with_name("shinglefold")
    place = ["--listen", "127.0.0.1:0", *(["--workers", "1"] if words[1] == "gateway" else [])]
    command = [str(program), *words[1:], *place]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(command, process.returncode, first + out, err)


def _ran(line: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the commands of a line: other programs in a shell, ours in this process, which has started."""
    if " | " in line:
        for part in line.split(" | "):
            ran = _ran(part, folder, stdin)
            if ran.returncode:
                break
            stdin = ran.stdout
        return ran
    words = shlex.split(line)
    if words[:2] in (["shinglefold", "gateway"], ["shinglefold", "serve"]):
        return _served(words, folder)
    if words[0] != "shinglefold" or {">", "&&"} & set(words):
        return _typed(line, folder, stdin)
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", given)
        patch.delenv("SHINGLEFOLD_WORKERS", raising=False)
        code = main(words[1:])
    told = []
    for stream in (out, err):
        stream.flush()
        told.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, code, *told)


def _typed(line: str, folder: Path, stdin: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long(every=15)
@pytest.mark.parametrize(("name", "line"), _EXAMPLES, ids=[line for _, line in _EXAMPLES])
def test_an_example_runs(folder, name, line):
    for tool in ("curl", "jq"):
        if f"{tool} " in line and (tool == "curl" or not shutil.which(tool)):
            pytest.skip(f"the example needs {tool} or the network")
    # A command that replaces an index gets a copy of its own.
    own = line.replace("--index site", "--index site2") if name == "index" else line
    if name == "sign":
        # What other examples read stays.
        own = line.replace("signed.", "signed2.")
    if name == "delete":
        # What is deleted is made first.
        pages = [{"id": f"page-{n}", "title": "Bridges", "body": "closed", "host": "x"} for n in (17, 18)]
        made = json_lines(*pages)
        assert _ran("shinglefold index - --index deleted", folder, made).returncode == 0
        own = line.replace("delete pages", "delete deleted")
    ran = _ran(own, folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
