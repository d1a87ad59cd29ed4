"""Options made in Python are checked as those of requests are."""

import pytest

from shinglefold.errors import ConfigError
from shinglefold.grouping import Policy
from shinglefold.rerank import FoldOptions, Scope
from shinglefold.rerank.similar import SimilarOptions


@pytest.mark.parametrize("made", [FoldOptions, SimilarOptions])
@pytest.mark.parametrize("scope", ["host", ("host",), [Scope("host"), "lang"], None])
def test_a_scope_that_is_none_is_told_how_one_is_made(made, scope):
    with pytest.raises(ConfigError, match=r"scope: expected a tuple of Scope; Scope\.parse reads text"):
        made(scope=scope)
    assert made(scope=(Scope("host"),)).scope


def test_a_policy_of_choosing_whom_to_show_is_told_likewise():
    with pytest.raises(ConfigError, match=r"Preference\.parse reads text"):
        FoldOptions(representative="newest:date")


@pytest.mark.parametrize("scope", ["host", ("host", 5), None])
def test_the_scope_of_a_gate_is_a_list_of_fields(scope):
    with pytest.raises(ConfigError, match="scope: expected a list of strings"):
        Policy(scope=scope)
    assert Policy(scope=("host",)).scope == ("host",)
