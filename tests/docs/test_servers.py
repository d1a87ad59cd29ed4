"""docs/performance.md: its figures of a server are those kept as evidence."""

import json
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_LINE = re.compile(r"^\| (?P<name>.+?) \| (?P<ru>[\d.,]+) \| (?P<zh>[\d.,]+) \|$", re.MULTILINE)


def test_the_figures_are_those_kept_as_evidence():
    evidence = sorted((_ROOT / "bench" / "runs").glob("*-servers.json"))[-1]
    kept = {row["name"]: row["value"] for row in json.loads(evidence.read_text("utf-8"))["rows"]}
    page = (_ROOT / "docs" / "performance.md").read_text("utf-8")
    lines = list(_LINE.finditer(page.split("## On a server")[1]))
    assert len(lines) == 20
    for line in lines:
        for corpus, told in (("libreoffice-ru", line["ru"]), ("libreoffice-zh-cn", line["zh"])):
            value = kept[f"{corpus}: {line['name']}"]
            assert told == (f"{value:,.0f}" if value >= 100 else f"{value:.2f}")
