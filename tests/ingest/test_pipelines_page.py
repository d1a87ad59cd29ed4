"""The docs page about pipelines: its examples run, and it is complete."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.pipeline.condition import parse_condition
from shinglefold.ingest.pipeline.steps import BUILT_IN

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text("utf-8")
#: The options of each processor; some share a row.
ROWS = {
    name: options
    for names, options in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) \|", PAGE, re.MULTILINE)
    for name in re.findall(r"\w+", names)
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_pipelines_can_be_built(make_pipeline: Callable[..., Pipeline]):
    definitions = [json.loads(block) for block in blocks("json") if '"processors"' in block]
    assert len(definitions) == 3
    for definition in definitions:
        make_pipeline(*definition.pop("processors"), **definition)


def test_simulation_shows_the_default_pipeline():
    def essence(definition: dict[str, Any]) -> list[Any]:
        return [
            {name: {key: v for key, v in options.items() if key != "description"}}
            for step in definition["processors"]
            for name, options in step.items()
        ]

    assert essence(json.loads(blocks("json")[0])) == essence(default_definition())


def test_its_conditions_are_understood():
    shown = re.search(r"## Conditions.*?\n```\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    conditions = [c for line in shown[1].splitlines() for c in re.split(r"\s{4,}", line) if c]
    assert len(conditions) == 8
    for condition in conditions:
        parse_condition(condition, "the page")


@pytest.mark.parametrize("processor", sorted(BUILT_IN))
def test_it_tells_every_option_of_every_processor(make_pipeline: Callable[..., Pipeline], processor: str):
    required = {
        "append": {"field": "x", "value": 1},
        "convert": {"field": "x", "type": "long"},
        "date": {"field": "x", "formats": "UNIX"},
        "drop": {},
        "fail": {"message": "x"},
        "gsub": {"field": "x", "pattern": "a", "replacement": "b"},
        "join": {"field": "x", "separator": ","},
        "rename": {"field": "x", "target_field": "y"},
        "set": {"field": "x", "value": 1},
        "split": {"field": "x", "separator": ","},
    }
    options = required.get(processor, {"field": "x"})
    with pytest.raises(ConfigError) as told:
        make_pipeline({processor: {**options, "no_such_option": 1}})
    known = set(str(told.value).split("Known: ")[1].rstrip(".").split(", "))
    common = {"if", "tag", "description", "ignore_failure", "on_failure"}
    assert common <= known
    assert known - common == set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", ROWS[processor])))
    assert all(f"`{name}`" in PAGE for name in common)
