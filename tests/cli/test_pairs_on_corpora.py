"""groups --pairs on real revisions of pages: enough of the labelled pairs fold, and hardly any others."""

import os
import re

import pytest

from shinglefold.canon import strip_html

pytestmark = [pytest.mark.corpus, pytest.mark.slow]
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
#: Pages of fewer tokens are not labelled, so nothing is known of pairs with them.
_LEAST_TOKENS = 30


# The labels are of the bodies alone. With titles, as by default, the smallest corpus is read once more.
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        pytest.param("libreoffice-ru", ("--field", "body"), marks=pytest.mark.long),
        pytest.param("libreoffice-zh-cn", ("--field", "body"), marks=pytest.mark.long),
        ("gnome-uk", ("--field", "body")),
        ("gnome-uk", ()),
    ],
    ids=["libreoffice-ru", "libreoffice-zh-cn", "gnome-uk", "gnome-uk with titles"],
)
def test_the_default_scheme_folds_what_is_alike_and_little_else(
    run, corpus, corpus_path, labelled_pairs, name, fields
):
    start = _processor()
    ran = run("groups", "--pairs", *fields, corpus_path(name))
    seconds = _processor() - start
    assert (ran.code, ran.err) == (0, "")
    folded = {tuple(sorted(line.split("\t")[:2])) for line in ran.out.splitlines()}
    labels = labelled_pairs(name)

    for least, wanted in ((0.95, 0.99), (0.8, 0.85)):
        alike = {pair for pair, similarity in labels.items() if similarity >= least}
        share = len(alike & folded) / len(alike)
        assert share >= wanted, f"{share:.4f} of the pairs with similarity ≥ {least} fold"

    short = {page["id"] for page in corpus(name) if _tokens(page) < _LEAST_TOKENS}
    judged = {pair for pair in folded if not short & set(pair)}
    different = sum(labels.get(pair, 0.0) < 0.7 for pair in judged)
    assert judged
    assert different / len(judged) <= 0.02, f"{different} of {len(judged)} folded pairs are under 0.7"
    if fields:
        assert 2 * len(judged & alike) / (len(judged) + len(alike)) >= 0.99
    assert seconds < 60


def _processor() -> float:
    """Return the seconds of the processor this process and its workers have had: a busy machine adds none."""
    return sum(os.times()[:4])


def _tokens(page: dict[str, str]) -> int:
    text = strip_html(page["body"]) if page["format"] == "html" else page["body"]
    return len(_WORDS.findall(text))
