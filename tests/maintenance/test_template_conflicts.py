import random
from fnmatch import fnmatchcase

import pytest

from shinglefold.maintenance.preconditions import conflicting_templates, patterns_overlap


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("news-*", "news-2026", True),
        ("news-*", "*-2026", True),
        ("news-*", "blog-*", False),
        ("*", "x", True),
        ("", "*", True),
        ("a*c", "ab*", True),
        ("a*c", "*d", False),
    ],
)
def test_two_patterns_meet_where_a_name_fits_both(one, other, meet):
    assert patterns_overlap(one, other) is patterns_overlap(other, one) is meet


def test_patterns_that_fit_one_name_always_meet():
    chance = random.Random(3)
    met = 0
    for _ in range(3_000):
        one, other = ("".join(chance.choices("ab*", k=chance.randrange(5))) for _ in range(2))
        names = ["".join(chance.choices("ab", k=chance.randrange(6))) for _ in range(20)]
        if any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in names):
            met += 1
            assert patterns_overlap(one, other), (one, other)
    assert met > 300


class Some:
    """Templates as a server tells them."""

    def __init__(self, indices: dict, legacy: dict) -> None:
        self.indices, self.legacy = indices, legacy

    def index_templates(self) -> dict:
        return self.indices

    def legacy_templates(self) -> dict:
        return self.legacy

    def resolved_template(self, name: str) -> dict:
        return self.indices[name]["template"]


def test_what_the_next_index_would_lose_is_told():
    settings = {"index": {"number_of_shards": "5"}}
    old = {
        "index_patterns": ["leg-*"],
        "settings": settings,
        "mappings": {"dynamic": "strict", "properties": {"title": {}, "body": {}}},
        "aliases": {"all": {}},
    }
    new = {"index_patterns": ["*-2026"], "priority": 7, "template": {"settings": settings}}
    told = conflicting_templates(Some({"years": new}, {"old": old}), ("leg-*",), "ours", "ours-dedup")
    assert "without its settings index.number_of_shards: 5" in told["index template years"][0]
    assert 'PUT /_index_template/years {"index_patterns": ["*-2026"]' in told["index template years"][0]
    assert '"composed_of": ["ours-dedup"]' in told["index template years"][0]
    (said,) = told["legacy template old"]
    for part in ("index.number_of_shards: 5", "mappings title, body", "aliases all", "dynamic"):
        assert part in said


def test_templates_that_have_the_fields_or_other_indices_lose_nothing():
    one = {"index_patterns": ["leg-*"], "composed_of": ["ours-dedup"], "template": {}}
    own = {"index_patterns": ["leg-*"], "template": {}}
    other = {"index_patterns": ["blog-*"]}
    assert (
        conflicting_templates(
            Some({"one": one, "ours": own}, {"other": other}), ("leg-*",), "ours", "ours-dedup"
        )
        == {}
    )
