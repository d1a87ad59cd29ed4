"""What an engine can do is said in the contract: nothing outside ``engines/`` asks which one it is."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from shinglefold.contracts import engine as contracts
from shinglefold.contracts import exclusive_writes as local_engines
from shinglefold.rerank.engine_calls import Call

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "core",
    "canon",
    "sketch",
    "passages",
    "relatives",
    "ingest",
    "offline",
    "maintenance",
    "rerank",
    "grouping",
    "api",
    "plugins",
    "testing",
    "cli",
)
ENGINES = re.compile("opensearch|elasticsearch|embedded|tantivy", re.IGNORECASE)
#: What asks an object for what its contract may not have.
PROBING = {"getattr", "hasattr", "setattr", "delattr", "vars", "dir", "attrgetter", "methodcaller"}
#: What opens an engine or reads its address; whoever has it open needs the contract alone.
OPENING = {
    "Connection", "each_with_scheme", "folder_of", "is_async_client", "is_server", "load_connection",
    "looks_like_server", "named_addresses", "open_async_engine", "open_blocking_twin", "open_engine",
    "without_secrets",
}  # fmt: skip
#: Rooms that open engines: commands, Spark's executors, and whoever is given an address to open a gate by.
OPENERS = {
    "api",
    "cli",
    "gateway",
    "offline/spark/read_index.py",
    "grouping/gate/async_gate.py",
    "grouping/gate/processor.py",
}
#: Words for people, who choose between an address and a folder: file and a part of the text.
TOLD = {
    ("cli/shared/maintenance.py", "beside an embedded index"),
    ("cli/shared/definitions.py", "folder of the embedded engine"),
}
#: Places that send a call by its name, which is one of both contracts: see the last test.
SENT = {("rerank/engine_calls.py", "getattr(engine, self.method)")}


@cache
def sources() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8")))
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
    ]


@cache
def walked() -> list[tuple[str, ast.AST]]:
    return [(file, node) for file, tree in sources() for node in ast.walk(tree)]


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    return ((file, node) for file, node in walked() if isinstance(node, kinds))


def called(node: ast.AST) -> str:
    """Return the name of what is called."""
    made = node.func if isinstance(node, ast.Call) else node
    return made.id if isinstance(made, ast.Name) else made.attr if isinstance(made, ast.Attribute) else ""


def is_engine(node: ast.AST) -> bool:
    """Tell whether an expression is an engine, as far as its name tells."""
    return bool(re.search(r"engine$|^opened$|^self\._driven$", ast.unparse(node)))


def test_nobody_asks_an_engine_for_what_its_contract_does_not_promise():
    found = {
        (file, ast.unparse(node))
        for file, node in nodes(ast.Call)
        if called(node) in PROBING and node.args and is_engine(node.args[0])
    }
    assert found == SENT


def test_nobody_asks_an_engine_for_its_class_but_by_a_contract():
    promised = {name for module in (contracts, local_engines) for name in vars(module)}
    asked = {
        (file, called(kind))
        for file, node in nodes(ast.Call)
        if called(node) in {"isinstance", "issubclass"} and is_engine(node.args[0])
        for kind in (node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]])
    }
    # A walk that looks at nothing would find nothing wrong.
    assert len(asked) >= 5
    assert not [one for one in asked if one[1] not in promised]


def test_nobody_asks_an_engine_for_its_name():
    # The conformance kit sees that an engine tells it.
    assert not [
        file
        for file, node in nodes(ast.Call)
        if called(node) == "info" and is_engine(node.func.value) and not file.startswith("testing/")
    ]
    assert not [
        file
        for file, node in nodes(ast.Compare)
        if "type(" in ast.unparse(node) and "engine" in ast.unparse(node).lower()
    ]


def test_no_text_outside_engines_names_one():
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = set()
    for file, tree in sources():
        words = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
        }
        found |= {
            (file, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in words
            and ENGINES.search(node.value)
        }
    told = {(file, part) for file, text in found for where, part in TOLD if where == file and part in text}
    assert told == TOLD
    assert len(found) == len(TOLD), found


def test_no_name_outside_engines_is_one_of_theirs():
    assert not [
        (file, ast.unparse(node))
        for file, node in nodes(ast.Name, ast.Attribute, ast.arg)
        if ENGINES.search(called(node) or getattr(node, "arg", ""))
    ]


def test_engines_are_imported_only_to_be_opened():
    imported = {
        (file, alias.name)
        for file, node in nodes(ast.ImportFrom)
        if (node.module or "").split(".")[:2] == ["shinglefold", "engines"]
        for alias in node.names
    }
    assert imported
    assert {name for _, name in imported} <= OPENING
    assert not [
        file for file, _ in imported if file not in OPENERS and file.split("/", maxsplit=1)[0] not in OPENERS
    ]
    assert not [
        file
        for file, node in nodes(ast.Import)
        if any(alias.name.startswith("shinglefold.engines") for alias in node.names)
    ]


#: What is sent only to engines that can do it.
ABLE = {"search_pipeline", "read"}


@pytest.mark.parametrize("method", sorted({*get_args(get_type_hints(Call)["method"])} - ABLE))
def test_what_is_sent_by_its_name_is_in_both_contracts(method):
    assert callable(vars(contracts.Engine)[method])
    assert callable(vars(contracts.AsyncEngine)[method])
