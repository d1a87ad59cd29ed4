"""The long texts made from templates."""

from bench.quality.templates import DOCUMENTS, RUNS, SLOTS, WORDS, documents


def test_documents_of_a_template_differ_in_their_facts_alone():
    made = documents()
    assert made == documents()
    assert len(made) == len(SLOTS) * len(RUNS) * (DOCUMENTS + 1)
    for at in range(0, len(made), DOCUMENTS + 1):
        one, other, *_, last, copy = made[at : at + DOCUMENTS + 1]
        assert one.template == other.template == copy.template
        differing = sum(a != b for a, b in zip(one.words, other.words, strict=True)) / WORDS
        share = SLOTS[one.template // len(RUNS)]
        assert 0.8 * share < differing <= share + max(RUNS) / WORDS
        assert last.facts == copy.facts
        assert 0 < sum(a != b for a, b in zip(last.words, copy.words, strict=True)) <= WORDS // 50
