"""What pairs and folding answer on the labelled corpora is what is on record, to the byte.

A change of code leaves all of it as it is. Where results are meant to change, put the new ones on record and
tell it in CHANGELOG.md:

    PYTHONPATH=tests python -m support.golden FOLDER [KIND…]
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.golden.corpora import CORPORA
from support.golden.results import computed, recorded

pytestmark = [pytest.mark.corpus, pytest.mark.slow, pytest.mark.parametrize("corpus", CORPORA)]

Results = dict[str, Any]


@pytest.fixture(scope="module")
def folder(corpus_path: Callable[[str], Path]) -> Path:
    """The folder of the corpora; skips where one is not there, or is not what the results are of."""
    folder = {corpus_path(corpus).parent for corpus in CORPORA}.pop()
    now, then = computed("editions", folder), recorded("editions")
    other = [corpus for corpus in CORPORA if now[corpus] != then[corpus]]
    if other:
        pytest.skip(f"the results on record are of another edition of {', '.join(other)}")
    return folder


@pytest.fixture(scope="module")
def searches(folder: Path) -> Callable[[], Results]:
    """What the searches of all corpora find; the indices are made at a time, and once."""
    return cache(lambda: computed("searches", folder))


@pytest.mark.parametrize("kind", ["pairs", "fingerprints", "collapse"])
def test_results_without_an_engine_are_those_on_record(folder, corpus, kind):
    assert differing(computed(kind, folder, [corpus]), kind, corpus) == {}


def test_folded_searches_find_what_is_on_record(searches, corpus):
    assert differing(searches(), "searches", corpus) == {}


def differing(now: Results, kind: str, corpus: str) -> Results:
    """Return by name what was and what is, of all that is not on record as it is."""
    was, is_ = recorded(kind)[corpus], now[corpus]
    names = dict.fromkeys([*was, *is_])
    return {name: (was.get(name), is_.get(name)) for name in names if was.get(name) != is_.get(name)}
