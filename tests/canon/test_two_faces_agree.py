"""The faces for people, for fingerprints and for an engine are one canonicalization."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated import texts
from support.servers.choose import examples

from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.canon.language_detection import token_hash
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import make_scheme

ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


def assert_agreement(canonicalizer: Canonicalizer, batch: Sequence[str]) -> int:
    hashed = canonicalizer.hash_batch(batch)
    assert len(hashed) == len(batch)
    assert hashed.offsets[0] == 0
    assert hashed.offsets[-1] == len(hashed.hashes)
    written = canonicalizer.text_batch(batch)
    for number, text in enumerate(batch):
        own = hashed.hashes[hashed.offsets[number] : hashed.offsets[number + 1]].tolist()
        tokens, placed = canonicalizer.tokens(text), canonicalizer.placed(text)
        words = [token.text for token in tokens]
        assert placed.hashes.tolist() == own, repr(text)
        places = zip(placed.starts.tolist(), placed.ends.tolist(), strict=True)
        assert list(places) == [token[1:3] for token in tokens], repr(text)
        assert [token_hash(word) for word in words] == own, repr(text)
        assert " ".join(words) == written[number], repr(text)
    return len(hashed.hashes)


@pytest.mark.long
def test_on_generated_texts(canonicalizer):
    number = examples(2_000)
    assert assert_agreement(canonicalizer, list(texts(number, seed=0))) > 5 * number


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "options", [CanonOptions("stem"), CanonOptions("surface", False), CanonOptions(min_length=3)]
)
def test_with_every_kind_of_options(options):
    assert_agreement(Canonicalizer.of(make_scheme(options=options)), list(texts(examples(700), seed=99)))


@given(st.lists(ANY_TEXT, max_size=6))
@settings(max_examples=examples(300), deadline=None)
def test_on_any_unicode(canonicalizer, batch):
    assert_agreement(canonicalizer, batch)


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "step"), [("libreoffice-ru", 24), ("libreoffice-zh-cn", 24), ("gnome-uk", 1)]
)
def test_on_a_part_of_the_corpora(
    canonicalizer: Canonicalizer, corpus: Callable[[str], Iterator[dict[str, str]]], name: str, step: int
):
    pages = list(corpus(name))
    chosen = pages[:: len(pages) // examples(len(pages) // step)]
    bodies = [strip_html(page["body"]) if page["format"] == "html" else page["body"] for page in chosen]
    assert assert_agreement(canonicalizer, list(_without_what_came_before(bodies))) > 20_000


def _without_what_came_before(pages: Sequence[str]) -> Iterator[str]:
    """Yield of each page the lines that no page before it has: most pages are revisions of others."""
    seen: set[str] = set()
    for page in pages:
        new = [line for line in page.splitlines(keepends=True) if line not in seen]
        seen.update(new)
        if new:
            yield "".join(new)


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
@settings(max_examples=examples(100), deadline=None)
def test_neighbours_in_a_batch_change_nothing(canonicalizer, batch):
    together = canonicalizer.hash_batch(batch)
    alone = [canonicalizer.hash_batch([text]) for text in batch]
    assert together.hashes.tolist() == [value for one in alone for value in one.hashes.tolist()]
    assert together.languages == tuple(one.languages[0] for one in alone)
    assert together.repairs.tolist() == [int(one.repairs[0]) for one in alone]


def test_tokens_of_many_texts_are_those_of_each_alone(canonicalizer):
    pairs = examples(500)
    batch = list(texts(2 * pairs, seed=11))
    declared = [None, "uk"] * pairs
    alone = [canonicalizer.tokens(text, code) for text, code in zip(batch, declared, strict=True)]
    assert canonicalizer.tokens_batch(batch, declared) == alone


@given(ANY_TEXT)
@settings(max_examples=examples(300), deadline=None)
def test_offsets_point_into_the_text_in_order(canonicalizer, text):
    end = 0
    for token in canonicalizer.tokens(text):
        assert end <= token.start <= token.end <= len(text)
        assert token.text
        end = token.start
