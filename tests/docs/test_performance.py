"""docs/performance.md: the kernel's table has the figures kept as evidence."""

import json
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
#: Columns of the table → names in the evidence.
_KERNELS = (
    "numpy, 336 values",
    "compiled, 336 values",
    "numpy, 168 values",
    "compiled, 168 values",
    "rensa",
    "datasketch",
    "pymorphy3 and datasketch, plainly",
)
#: Rows of the table → texts in the evidence.
_TEXTS = {
    "generated Russian, 500 words": "generated ru, 500 words",
    "libreoffice-ru, 278 tokens": "libreoffice-ru",
    "gnome-uk, 184 tokens": "gnome-uk",
    "libreoffice-zh-cn, 412 characters": "libreoffice-zh-cn",
    "generated Russian, 20 words": "generated ru, 20 words",
}


def test_the_figures_of_the_kernel_are_those_kept_as_evidence():
    page = (_ROOT / "docs" / "performance.md").read_text("utf-8")
    (evidence,) = set(re.findall(r"bench/runs/[\d-]+-speed\.json", page))
    kept = {
        (row["name"], row["note"].split(";")[0]): row["value"]
        for row in json.loads((_ROOT / evidence).read_text("utf-8"))["rows"]
    }
    for row, text in _TEXTS.items():
        (told,) = re.findall(rf"^\| {re.escape(row)} \|(.*)\|$", page, re.MULTILINE)
        values = [kept.get((f"kernel: {name}", text)) for name in _KERNELS]
        assert [cell.strip() for cell in told.split("|")] == [f"{v:,.0f}" if v else "" for v in values], row
