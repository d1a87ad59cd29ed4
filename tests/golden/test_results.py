"""What pairs and folding answer on the labelled corpora is what is on record, to the byte.

A change of code leaves all of it as it is. Where results are meant to change, put the new ones on record and
tell it in CHANGELOG.md:

    PYTHONPATH=tests python -m support.golden FOLDER [KIND…]
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.golden.corpora import CORPORA
from support.golden.results import KINDS, recorded

pytestmark = [pytest.mark.corpus, pytest.mark.slow]


@pytest.mark.parametrize("kind", ["pairs", "fingerprints", "collapse", "searches"])
@pytest.mark.parametrize(
    "corpus", [CORPORA[0], *(pytest.param(corpus, marks=pytest.mark.long) for corpus in CORPORA[1:])]
)
def test_results_are_those_on_record(corpus_path: Callable[[str], Path], kind: str, corpus: str):
    folder = corpus_path(corpus).parent
    if KINDS["editions"](folder, corpus) != recorded("editions")[corpus]:
        pytest.skip(f"the results on record are of another edition of {corpus}")
    was, is_ = recorded(kind)[corpus], KINDS[kind](folder, corpus)
    names = dict.fromkeys([*was, *is_])
    assert {name: (was.get(name), is_.get(name)) for name in names if was.get(name) != is_.get(name)} == {}
