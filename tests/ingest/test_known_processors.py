"""The processors that the servers have, too: names, lists, patterns, types and dates."""

import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from shinglefold import registry
from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline

Run = Callable[..., Any]
Make = Callable[..., Pipeline]


@pytest.mark.parametrize(
    ("processor", "document", "expected"),
    [
        ({"rename": {"field": "a.b", "target_field": "c"}}, {"a": {"b": 1}}, {"a": {}, "c": 1}),
        ({"rename": {"field": "x", "target_field": "c", "ignore_missing": True}}, {"a": 1}, {"a": 1}),
        (
            {"rename": {"field": "a", "target_field": "b", "override": True}},
            {"a": 1, "b": 2},
            {"b": 1},
        ),
        ({"append": {"field": "t", "value": "x"}}, {}, {"t": ["x"]}),
        ({"append": {"field": "t", "value": "x"}}, {"t": None}, {"t": ["x"]}),
        (
            {"append": {"field": "t", "value": ["{{{n}}}", "b"]}},
            {"t": "a", "n": 7},
            {"t": ["a", "7", "b"], "n": 7},
        ),
        ({"append": {"field": "t", "value": "a", "allow_duplicates": False}}, {"t": ["a"]}, {"t": ["a"]}),
        ({"append": {"field": "t", "value": True, "allow_duplicates": False}}, {"t": [1]}, {"t": [1, True]}),
        ({"split": {"field": "t", "separator": "[,;] *"}}, {"t": "a, b;c;;"}, {"t": ["a", "b", "c"]}),
        (
            {"split": {"field": "t", "separator": ";", "preserve_trailing": True}},
            {"t": "a;;"},
            {"t": ["a", "", ""]},
        ),
        ({"split": {"field": "t", "separator": "(,)"}}, {"t": "a,b"}, {"t": ["a", "b"]}),
        ({"split": {"field": "t", "separator": "(?=[A-Z])"}}, {"t": "OneTwo"}, {"t": ["One", "Two"]}),
        ({"split": {"field": "t", "separator": ","}}, {"t": ""}, {"t": [""]}),
        ({"split": {"field": "t", "separator": ","}}, {"t": ",,"}, {"t": []}),
        ({"join": {"field": "t", "separator": "-"}}, {"t": ["a", 1, True, None]}, {"t": "a-1-true"}),
        (
            {"join": {"field": "t", "separator": "-"}},
            {"t": ["a", {"b": [True, None, "é"]}, [1, "c"]]},
            {"t": 'a-{"b":[true,null,"é"]}-[1,"c"]'},
        ),
        ({"lowercase": {"field": "t"}}, {"t": ["Ґанок", "Ёж"]}, {"t": ["ґанок", "ёж"]}),
        ({"uppercase": {"field": "t", "target_field": "u"}}, {"t": "їжак"}, {"t": "їжак", "u": "ЇЖАК"}),
        ({"trim": {"field": "t", "target_field": None, "on_failure": None}}, {"t": " a\n"}, {"t": "a"}),
        (
            {"gsub": {"field": "t", "pattern": r"(\d+) грн", "replacement": "$1 UAH"}},
            {"t": "5 грн"},
            {"t": "5 UAH"},
        ),
        (
            {"gsub": {"field": "t", "pattern": r"(\d+) USD", "replacement": r"\$$1 \\$1"}},
            {"t": "5 USD"},
            {"t": "$5 \\5"},
        ),
        ({"convert": {"field": "n", "type": "integer"}}, {"n": "0x1F"}, {"n": 31}),
        ({"convert": {"field": "n", "type": "integer"}}, {"n": [2.0, "-3", "-0x1F"]}, {"n": [2, -3, -31]}),
        ({"convert": {"field": "n", "type": "float"}}, {"n": ["1.5", 2]}, {"n": [1.5, 2.0]}),
        ({"convert": {"field": "n", "type": "boolean"}}, {"n": "True"}, {"n": True}),
        ({"convert": {"field": "n", "type": "string"}}, {"n": False}, {"n": "false"}),
        (
            {"convert": {"field": "n", "type": "auto"}},
            {"n": ["true", "7", "7.5", "7_5", "sieben"]},
            {"n": [True, 7, 7.5, "7_5", "sieben"]},
        ),
    ],
)
def test_a_processor_changes_the_field_it_names(run_one: Run, processor, document, expected):
    before = repr(document)
    assert run_one(document, processor).document == expected
    assert repr(document) == before


@pytest.mark.parametrize(
    ("processor", "document", "reason"),
    [
        ({"rename": {"field": "x", "target_field": "y"}}, {}, r"field \[x\] is missing"),
        ({"rename": {"field": "x", "target_field": "y"}}, {"x": 1, "y": 2}, r"\[y\] exists already"),
        ({"split": {"field": "t", "separator": ","}}, {"t": 5}, "is a number, expected text"),
        ({"join": {"field": "t", "separator": ","}}, {"t": "a"}, "is text, expected a list"),
        ({"trim": {"field": "t"}}, {"t": ["a", 1]}, "is a number, expected text"),
        ({"lowercase": {"field": "t"}}, {"t": None}, r"field \[t\] is null"),
        ({"convert": {"field": "n", "type": "integer"}}, {"n": "9" * 5000}, "is no integer"),
        ({"convert": {"field": "n", "type": "integer"}}, {"n": "1_000"}, "is no integer"),
        ({"convert": {"field": "n", "type": "integer"}}, {"n": 1.9}, "1.9 is no integer"),
        ({"convert": {"field": "n", "type": "long"}}, {"n": "1.9"}, "'1.9' is no long"),
        ({"convert": {"field": "n", "type": "float"}}, {"n": "1_0.5"}, "is no float"),
        ({"date": {"field": "d", "formats": ["UNIX"]}}, {"d": "1_0"}, "is not a date"),
        ({"convert": {"field": "n", "type": "float"}}, {"n": "1e999"}, "is no float"),
        ({"convert": {"field": "n", "type": "boolean"}}, {"n": "maybe"}, "is no boolean"),
        ({"date": {"field": "d", "formats": ["ISO8601"]}}, {"d": "heute"}, "is not a date in ISO8601"),
        ({"date": {"field": "d", "formats": ["UNIX"]}}, {"d": "nan"}, "is not a date"),
        ({"date": {"field": "d", "formats": ["UNIX"]}}, {"d": 1e30}, "is not a date"),
        ({"date": {"field": "d", "formats": ["UNIX"]}}, {}, "is missing, expected a date"),
    ],
)
def test_what_a_processor_cannot_do_fails_the_document_and_says_why(
    run_one: Run, processor, document, reason
):
    outcome = run_one(document, processor)
    assert outcome.status == "failed"
    assert re.search(reason, outcome.failure.reason), outcome.failure.reason
    assert len(outcome.failure.reason) < 300


@pytest.mark.parametrize(
    ("value", "formats", "zone", "expected"),
    [
        ("2026-11-21", ["ISO8601"], "UTC", "2026-11-21T00:00:00.000Z"),
        ("2026-11-21T10:00:00+03:00", ["ISO8601"], "UTC", "2026-11-21T07:00:00.000Z"),
        (1_700_000_000, ["UNIX"], "UTC", "2023-11-14T22:13:20.000Z"),
        ("1700000000123", ["UNIX_MS"], "UTC", "2023-11-14T22:13:20.123Z"),
        ("21.11.2026 10:30", ["ISO8601", "dd.MM.yyyy HH:mm"], "Europe/Kyiv", "2026-11-21T08:30:00.000Z"),
        ("21.07.2026 10:30", ["dd.MM.yyyy HH:mm"], "Europe/Kyiv", "2026-07-21T07:30:00.000Z"),
        (
            "Sat, 21 Nov 2026 10:30:05 +0000",
            ["EEE, d MMM yyyy HH:mm:ss Z"],
            "UTC",
            "2026-11-21T10:30:05.000Z",
        ),
        ("21 o'clock 2026", ["dd 'o''clock' yyyy"], "UTC", "2026-01-21T00:00:00.000Z"),
        ("100% 2026", ["'100'% yyyy"], "UTC", "2026-01-01T00:00:00.000Z"),
        ("2026 0.123456789", ["yyyy s.SSSSSSSSS"], "UTC", "2026-01-01T00:00:00.123Z"),
        ("20261121103005123456789", ["yyyyMMddHHmmssSSSSSSSSS"], "UTC", "2026-11-21T10:30:05.123Z"),
    ],
)
def test_a_date_is_read_in_the_first_format_that_fits(run_one: Run, value, formats, zone, expected):
    processor = {"date": {"field": "d", "formats": formats, "timezone": zone, "target_field": "when"}}
    done = run_one({"d": value}, processor).document
    assert done == {"d": value, "when": expected}


@pytest.mark.parametrize(
    ("processor", "message"),
    [
        ({"gsub": {"field": "t", "pattern": "(", "replacement": ""}}, "not a regular expression"),
        ({"gsub": {"field": "t", "pattern": "a", "replacement": "$7"}}, "'replacement'"),
        ({"gsub": {"field": "t", "pattern": "a"}}, "'replacement' is required"),
        ({"join": {"field": "t"}}, "'separator' is required"),
        ({"join": {"field": "t", "separator": 5}}, "'separator': expected text, got 5"),
        ({"convert": {"field": "t", "type": "intger"}}, "integer"),
        ({"date": {"field": "t", "formats": ["QQ yyyy"]}}, "'QQ', which is not supported"),
        ({"date": {"field": "t", "formats": ["yyyy MM yyyy"]}}, "has a part twice"),
        ({"date": {"field": "t", "formats": ["yyyy 'o"]}}, "a quote .* never closes"),
        (
            {"date": {"field": "t", "formats": ["ISO8601"], "timezone": "Mars/Base"}},
            "no time zone 'Mars/Base'",
        ),
        ({"append": {"field": "t"}}, "'value' is required"),
        ({"rname": {"field": "t"}}, "rename"),
    ],
)
def test_what_cannot_work_is_refused_when_the_pipeline_is_read(make_pipeline: Make, processor, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        make_pipeline(processor)


class Shout:
    """A stranger's processor."""

    type = "shout"

    def __init__(self, options, tools):
        self.field = options.text("field")

    def apply(self, documents):
        return [{**document, self.field: document[self.field].upper()} for document in documents]


class Seven(Shout):
    """One that does not keep its contract."""

    def apply(self, documents):
        return [7] * len(documents)


def install(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    made = [EntryPoint(name, value, registry.PROCESSORS) for name, value in points]
    monkeypatch.setattr(
        registry, "entry_points_of", lambda group: made if group == registry.PROCESSORS else []
    )
    monkeypatch.setitem(sys.modules, "strangers_processors", sys.modules[__name__])


def test_an_installed_processor_works_in_every_pipeline(make_pipeline: Make, run_one: Run, monkeypatch):
    install(monkeypatch, ("shout", "strangers_processors:Shout"))
    assert run_one({"t": "a"}, {"shout": {"field": "t"}}).document == {"t": "A"}
    with pytest.raises(ConfigError, match="fild"):
        make_pipeline({"shout": {"field": "t", "fild": 1}})
    with pytest.raises(ConfigError, match="shout"):
        make_pipeline({"shuot": {}})


def test_a_processor_that_returns_nonsense_fails_the_document_as_its_own_fault(run_one: Run, monkeypatch):
    install(monkeypatch, ("seven", "strangers_processors:Seven"))
    outcome = run_one({"t": "a"}, {"seven": {"field": "t"}})
    assert outcome.status == "failed"
    assert "the processor returned a number instead of a document" in outcome.failure.reason


def test_unavailable_processors_are_reported(make_pipeline: Make, monkeypatch):
    install(
        monkeypatch,
        ("twice", "strangers_processors:Shout"),
        ("twice", "strangers_processors:Seven"),
        ("gone", "no_such_module:Thing"),
        ("nothing", "builtins:dict"),
    )
    with pytest.raises(ConfigError, match="two plugins claim"):
        make_pipeline({"twice": {"field": "t"}})
    with pytest.raises(ConfigError, match="can't be imported"):
        make_pipeline({"gone": {"field": "t"}})
