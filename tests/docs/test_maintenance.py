"""docs/maintenance.md: its commands exist, and its figure is that kept as evidence."""

import json
import re
from pathlib import Path
from typing import get_args

from shinglefold.cli.main import cli
from shinglefold.ingest import mappings
from shinglefold.maintenance.doctor import Finding

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "maintenance.md").read_text("utf-8")


def test_its_commands_can_be_read():
    lines = re.findall(r"^shinglefold (.*)$", PAGE, re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        name, *arguments = re.findall(r"'[^']*'|\S+", line)
        cli.commands[name].make_context(name, [argument.strip("'") for argument in arguments])


def test_every_finding_and_every_field_is_told(scheme):
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(get_args(Finding))
    fields = mappings(scheme)["properties"]["_dedup"]["properties"]
    told = dict(re.findall(r"^\| `_dedup\.(\w+)` \| `(\w+)`", PAGE, re.MULTILINE))
    assert told == {name: definition["type"] for name, definition in fields.items()}


def test_its_figure_is_that_measured_last():
    newest = max((ROOT / "bench" / "runs").glob("*-storage.json"))
    rows = {row["name"]: row["value"] for row in json.loads(newest.read_text("utf-8"))["rows"]}
    (figure,) = re.findall(r"grows by (\d+) bytes", PAGE)
    assert int(figure) == round(rows["+ fingerprint, as chosen"])
