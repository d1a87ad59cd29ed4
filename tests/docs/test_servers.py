"""docs/performance.md: its figures of a server are those kept as evidence."""

import json
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
#: Rows of the table → names in the evidence.
_ROWS = {
    "plain bulk of texts, documents a second": "texts, plain bulk, two requests at a time",
    "HTML, signed on the way ÷ plain bulk of HTML": "pages, with the stage ÷ plain bulk",
    "texts, signed on the way ÷ plain bulk of texts": (
        "texts, with the stage ÷ plain bulk, two requests at a time"
    ),
    "the same with the extra `fast`": (
        "texts, with the stage, compiled code loaded ÷ plain bulk, two requests at a time"
    ),
    "the same with the extra `fast` and `--workers 1`": (
        "texts, with the stage, compiled code loaded, no workers ÷ plain bulk, two requests at a time"
    ),
    "texts that were signed earlier ÷ plain bulk of texts": (
        "texts with fingerprints of before, plain bulk, two requests at a time"
        " ÷ plain bulk, two requests at a time"
    ),
    "bytes that a fingerprint adds to a document": "growth",
    "page of the engine, ms (p50)": "plain page, p50",
    "native collapse with members, ms (p50)": "native collapse with members, p50",
    "native oversample and collapse, ms (p50)": "native oversample + collapse, p50",
    "folded page with members, ms (p50)": "folded page with members, p50",
    "folded page with members, ms (p99)": "folded page with members, p99",
    "folded page with members, ms of the client's processor": "folded page with members, CPU of the client",
    "folded page ÷ native collapse, both with members (p50)": (
        "folded page with members, p50 ÷ native collapse with members, p50"
    ),
    "the same after `FoldedSearch.compile()`": (
        "folded page with members, compiled, p50 ÷ native collapse with members, p50"
    ),
}
_LINE = re.compile(r"^\| (?P<name>.+?) \| (?P<ru>[\d.,]+) \| (?P<zh>[\d.,]+) \|$", re.MULTILINE)


def test_the_figures_are_those_kept_as_evidence():
    evidence = sorted((_ROOT / "bench" / "runs").glob("*-servers.json"))[-1]
    kept = {row["name"]: row["value"] for row in json.loads(evidence.read_text("utf-8"))["rows"]}
    page = (_ROOT / "docs" / "performance.md").read_text("utf-8")
    lines = list(_LINE.finditer(page.split("## On a server")[1]))
    assert [line["name"] for line in lines] == list(_ROWS)
    for line in lines:
        for corpus, told in (("libreoffice-ru", line["ru"]), ("libreoffice-zh-cn", line["zh"])):
            value = kept[f"{corpus}: {_ROWS[line['name']]}"]
            assert told == (f"{value:,.0f}" if value >= 100 else f"{value:.2f}")
