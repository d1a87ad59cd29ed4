"""docs/collapse.md: its request is understood."""

import json
import re
from pathlib import Path

from shinglefold.rerank import FoldOptions
from shinglefold.rerank.request.bodies import split_request

PAGE = (Path(__file__).parents[2] / "docs" / "collapse.md").read_text("utf-8")


def test_its_request_is_understood():
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    options = FoldOptions.parse(split_request(json.loads(example))[1])
    assert [one.name for one in options.inner_hits] == ["cheapest", "by_city"]
