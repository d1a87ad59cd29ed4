"""The page about faults names tests that are there."""

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
PAGE = (_ROOT / "docs" / "reliability.md").read_text("utf-8")


def test_every_test_that_is_named_is_there():
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 8
    for file, test in named:
        texts = [found.read_text("utf-8") for found in (_ROOT / "tests").rglob(file)]
        assert any(f"def {test}(" in text or not test for text in texts), file
