import pytest

from shinglefold.canon.unicode_tables import repair
from shinglefold.testing.edits import edited


@pytest.mark.parametrize(
    ("word", "repaired", "replaced", "script"),
    [
        ("cтoлицa", "столица", 3, "Cyrl"),
        ("раypal", "paypal", 2, "Latn"),
        ("kоd", "kod", 1, "Latn"),
        ("слово", "слово", 0, "Cyrl"),
        ("москвaλ", "москвaλ", 0, ""),
        ("usbшный", "usbшный", 0, ""),
    ],
)
def test_foreign_letters_with_a_twin_are_folded_to_the_script_of_the_word(word, repaired, replaced, script):
    assert repair(word) == (repaired, replaced, script)


def test_the_company_a_word_keeps_decides_its_script(canonicalizer):
    russian = [t.text for t in canonicalizer.tokens("Мост закрыли yтpoм у тpoтyapa, где ocтaнoвкa и сop")]
    assert russian == ["мост", "закрыть", "утром", "у", "тротуар", "где", "остановка", "и", "сор"]
    assert [t.text for t in canonicalizer.tokens("the сop and раypal")] == ["the", "cop", "and", "paypal"]


def test_a_letter_without_a_twin_tells_the_script_whatever_the_company(canonicalizer):
    names = "GNOME Terminal Preferences Profiles Scrolling"
    text = f"Виберіть {names}: кожна закладка пояснена окремо, налаштування застосовуються одразу"
    tampered = edited(text, "look-alikes", 1.0, "uk")
    assert tampered.changed > 6
    both = canonicalizer.tokens_batch([tampered.text, text])
    found, wanted = ([(t.text, t.language) for t in tokens] for tokens in both)
    assert found == wanted
    assert ("закладка", "uk") in found


def test_repairs_are_counted_with_the_document(canonicalizer):
    batch = canonicalizer.hash_batch(["Cтoлица Pоссии", "Столица России", "сто\u00adлица Rоссии"])
    assert batch.repairs.tolist() == [3, 0, 1]
    first, second = (batch.hashes[batch.offsets[d] : batch.offsets[d + 1]].tolist() for d in (0, 1))
    assert first == second


def test_a_repaired_word_is_lemmatized_in_its_language(canonicalizer):
    assert [t.text for t in canonicalizer.tokens("Кpacивые PАМЫ")] == ["красивый", "рама"]
    assert [(t.text, t.language) for t in canonicalizer.tokens("runnіng")] == [("run", "en")]
