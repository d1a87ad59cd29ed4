"""Rules that a regrouping notes in the recipe, so that later runs agree."""

from dataclasses import replace

import pytest
from support.hits import SCHEME
from support.numbered import connected_groups, groups_of, stored
from support.random_pages import SPECS

from shinglefold.errors import ConfigError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.rules import Rules
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan
from shinglefold.model.recipe import META_KEY, Recipe

#: Above what most pairs of these pages have.
STRICT = RegroupOptions(min_resemblance=0.99, scope=("host",))


def noted(engine, index: str) -> dict[str, object]:
    return dict(Recipe.of(engine.mappings(index), index).grouping)


def test_noted_rules_hold_for_the_next_regrouping(engine, index):
    first = regroup(engine, index, STRICT)
    assert noted(engine, index) == {"min_resemblance": 0.99, "scope": ["host"]}
    again = regroup(engine, index)
    assert (again.counts.planned, again.counts.groups) == (0, first.counts.groups)
    looser = regroup(engine, index, RegroupOptions(min_resemblance=0.5))
    assert noted(engine, index) == {"min_resemblance": 0.5, "scope": ["host"]}
    assert looser.counts.groups < first.counts.groups


def test_connected_linkage_is_kept_by_the_next_run(engine, index):
    regroup(engine, index, RegroupOptions("connected"))
    again = regroup(engine, index)
    assert (again.linkage, again.counts.planned) == ("connected", 0)
    found = {frozenset(members) for members in groups_of(stored(engine, index)).values()}
    assert found == connected_groups(groups_of_numbers(engine, index))


def groups_of_numbers(engine, index: str) -> list[int]:
    return [number for members in groups_of(stored(engine, index)).values() for number in members]


def test_by_scheme_forgets_noted_rules(engine, index):
    before = regroup(engine, index).counts.groups
    regroup(engine, index, STRICT)
    forgotten = regroup(engine, index, RegroupOptions(by_scheme=True))
    assert noted(engine, index) == {}
    assert "grouping" not in engine.mappings(index)["_meta"][META_KEY]
    assert forgotten.counts.groups == before


def test_a_dry_run_notes_nothing(engine, index):
    regroup(engine, index, replace(STRICT, dry_run=True))
    assert noted(engine, index) == {}


def test_later_indexing_and_gates_follow_noted_rules(engine, index):
    regroup(engine, index, STRICT)
    recipe = Recipe.of(engine.mappings(index), index)
    assert Numbering(engine, index, recipe).rules == Rules(0.99, scope=("host",))
    assert Numbering(engine, index, recipe, rules=Rules(0.7)).rules == Rules(0.7, scope=("host",))
    pairs = Rules.of(recipe)
    assert pairs.or_noted(replace(recipe, grouping={})) == pairs
    with Gate(engine, index, Policy("tag")) as gate:
        strict = gate.admit([{"_id": "p9001", "host": "b.org", "_dedup": twin(engine, index)}])
    assert strict[0].leads
    regroup(engine, index, RegroupOptions(by_scheme=True))
    with Gate(engine, index, Policy("tag")) as gate:
        loose = gate.admit([{"_id": "p9002", "host": "b.org", "_dedup": twin(engine, index)}])
    assert not loose[0].leads


def twin(engine, index: str) -> dict[str, object]:
    """Return the fingerprint of a page of the host a.org, with another text and a signature."""
    number = next(
        at
        for at, spec in enumerate(SPECS)
        if spec.signed and spec.host == "a.org" and spec.scheme == SCHEME.id
    )
    found = dict(stored(engine, index)[number])
    return {name: value for name, value in found.items() if name not in ("group", "leader")}


def test_setting_an_index_up_again_keeps_the_note(engine, index):
    regroup(engine, index, STRICT)
    recipe = Recipe.of(engine.mappings(index), index)
    request = SetupRequest(replace(recipe, fields=("title",), grouping={}), (index,))
    carry_out(engine, make_plan(engine, request))
    assert noted(engine, index) == {"min_resemblance": 0.99, "scope": ["host"]}


@pytest.mark.parametrize(
    "grouping", [{"min_resemblance": "high"}, {"scope": "host"}, {"min_length_ratio": 7}]
)
def test_a_damaged_note_is_refused(grouping):
    with pytest.raises(ConfigError, match="the recipe notes groups"):
        Rules.of(replace(default_recipe(SCHEME), grouping=grouping))
