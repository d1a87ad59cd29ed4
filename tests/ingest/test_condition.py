import pytest

from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.pipeline.condition import parse_condition

DOCUMENT = {
    "format": "html",
    "n": 3,
    "flag": True,
    "it's": "it's",
    "tags": ["a", "b"],
    "meta": {"host": "example.org", "odd key": 1},
    "switches": [True, None],
    "nothing": None,
    "blank": "",
    "none": [],
    "bare": {},
}


def holds(source: str) -> bool:
    return parse_condition(source, "here").holds(DOCUMENT)


@pytest.mark.parametrize(
    "source",
    [
        "ctx.format == 'html'",
        'ctx.format == "html"',
        "ctx['format'] == 'html'",
        "ctx.meta['odd key'] == 1",
        "ctx.meta.host != 'example.com'",
        "ctx.missing == null",
        "ctx.nothing == null",
        "ctx.missing?.deeper == null",
        "ctx.n > 2 && ctx.n >= 3 && ctx.n < 9223372036854775807 && ctx.n <= 3.0",
        "ctx.n == 3.0",
        "ctx.flag ",
        "!(ctx.n > 5)",
        "!ctx.flag || ctx.format != null",
        "ctx.tags.contains('a')",
        "ctx.meta.host.contains('ample') && ctx.meta.host.endsWith('.org')",
        "ctx.format.startsWith('ht') && ctx.format.length() == 4 && ctx.tags.size() == 2",
        "ctx.meta.containsKey('host') && !ctx.meta.containsKey(ctx.tags) && !ctx.meta.containsKey(null)",
        "ctx.switches.contains(true) && !ctx.switches.contains(1) && ctx.switches.contains(null)",
        "!ctx.format.isEmpty() && !ctx.tags.isEmpty() && !ctx.meta.isEmpty()",
        "ctx.blank.isEmpty() && ctx.none.isEmpty() && ctx.bare.isEmpty()",
        "ctx.n instanceof Number && ctx.tags instanceof List && !(ctx.flag instanceof Number)",
        "ctx.format.toUpperCase() == 'HTML'",
        "ctx['it\\'s'] == 'it\\'s'",
        "false || true && !false",
    ],
)
def test_holds_as_on_the_servers(source: str):
    assert holds(source) is True


@pytest.mark.parametrize(
    "source", ["ctx.flag == 1", "ctx.n == '3'", "ctx.tags.contains('c')", "ctx.n > 2 && ctx.n > 3"]
)
def test_does_not_hold(source: str):
    assert holds(source) is False


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("ctx.missing.deeper == 1", r"no \[deeper\] in null; write \?\.deeper"),
        ("ctx.missing > 1", "null > a number"),
        ("ctx.format > 1", "not supported"),
        ("ctx.flag < 2", "a boolean < a number"),
        ("2 > ctx.flag", "a number > a boolean"),
        ("ctx.missing.contains('x')", "null has no such contains"),
        ("ctx.format.contains(1)", "no such contains"),
        ("ctx.format", "neither true nor false"),
        ("ctx.n && true", "neither true nor false"),
        ("false || ctx.n", "neither true nor false"),
        ("!ctx.n", "neither true nor false"),
    ],
)
def test_what_fails_on_the_servers_fails_the_document_here(source: str, told: str):
    with pytest.raises(ProcessorError, match=told):
        holds(source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "ctx.n = 3",
        "ctx.n ==",
        "(ctx.flag",
        "ctx.flag ctx.flag",
        "__import__('os')",
        "ctx.n.foo()",
        "ctx['tags']['size']() == 2",
        "doc.n == 1",
        "ctx.n + 1 == 2",
        "ctx.x instanceof Foo",
        "ctx.n == 'open",
        "for (x in ctx) {}",
        "ctx.format =~ /x/",
        "(" * 299,
    ],
)
def test_what_is_outside_the_subset_is_refused_with_its_place(source: str):
    with pytest.raises(ConfigError, match="here: the condition"):
        parse_condition(source, "here")


def test_the_refusal_says_where_in_the_text():
    with pytest.raises(ConfigError, match="from character 6 on"):
        parse_condition("ctx.n + 1", "here")


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5_000 + "ctx.a" + ")" * 5_000,
        "ctx.a == " + "9" * 5_000,
        "ctx" + ".a" * 20_000,
        "!" * 400 + "ctx.a",
    ],
)
def test_a_condition_of_any_length_is_refused_in_few_words(source):
    with pytest.raises(ConfigError) as told:
        parse_condition(source, "the step")
    assert len(str(told.value)) < 700


def test_the_longest_supported_condition_can_be_evaluated():
    condition = parse_condition("ctx.a == 1 || " * 39 + "!(ctx" + "?.a" * 30 + " != null)", "the step")
    assert condition.holds({"a": {}})
