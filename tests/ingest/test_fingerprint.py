import base64

import numpy as np
import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.batching import TEXT_BUDGET, blocks
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint

PAGE = " ".join(f"слово{n} стоит дома в городе номер {n}" for n in range(40))
UKRAINIAN = "Цей їжак живе у лісі й щодня шукає гриби та ягоди, бо наближається довга зима."
CHINESE = "这个城市的天气很好我们明天一起去公园散步吧然后再去图书馆看书"


@pytest.mark.parametrize("text", ["", "слово", "   \n", "…—!", "the", "\0", "\ud800", "ö" * 3])
def test_empty_and_one_word_texts_get_no_signature(fingerprinter: Fingerprinter, text: str):
    (made,) = fingerprinter.fingerprint([text])
    assert made.signature == b""
    assert made.supershingles == ()
    assert made.digest == ""
    assert "signature" not in made.to_field()


def test_a_page_gets_everything_the_scheme_promises(fingerprinter: Fingerprinter, scheme: Scheme):
    (made,) = fingerprinter.fingerprint([PAGE])
    assert made.scheme == scheme.id
    assert made.lang == "ru"
    assert made.shingles > 100
    assert made.digest
    assert len(made.supershingles) == scheme.sketch.groups
    assert len(made.signature) == scheme.sketch.values * scheme.sketch.bits // 8
    assert base64.b64decode(made.to_field()["signature"]) == made.signature
    assert Fingerprint.from_field(made.to_field()) == made


def test_the_same_words_in_other_forms_get_the_same_digest(fingerprinter: Fingerprinter):
    one, other = fingerprinter.fingerprint(
        ["Красивая книга лежит на деревянном столе", "красивые КНИГИ лежат: на деревянных столах!"]
    )
    assert one.digest == other.digest != ""


def test_the_width_of_a_shingle_follows_the_language(canonicalizer: Canonicalizer, scheme: Scheme):
    wide = Fingerprinter(scheme.with_options(word_width=5, char_width=2), canonicalizer)
    russian, chinese = wide.fingerprint_arrays([PAGE, CHINESE]).shingles.tolist()
    batch = canonicalizer.hash_batch([PAGE, CHINESE])
    words, characters = np.diff(batch.offsets).tolist()
    assert russian == words - 4
    assert chinese == characters - 1


def test_a_fingerprint_does_not_depend_on_its_block(fingerprinter: Fingerprinter):
    texts = [PAGE, "", UKRAINIAN, CHINESE, "x" * (TEXT_BUDGET + 1), PAGE[:300]]
    together = fingerprinter.fingerprint(texts)
    assert together == [fingerprinter.fingerprint([text])[0] for text in texts]


def test_the_arrays_tell_the_same_as_the_fingerprints(fingerprinter: Fingerprinter):
    texts = [PAGE, "", UKRAINIAN, "слово", CHINESE] * 3
    prints, made = fingerprinter.fingerprint_arrays(texts), fingerprinter.fingerprint(texts)
    assert len(prints) == len(made)
    assert prints.digests == tuple(one.digest for one in made)
    assert prints.languages == tuple(one.lang for one in made)
    assert prints.valid.tolist() == [bool(one.signature) for one in made]
    assert prints.shingles.tolist() == [one.shingles for one in made]
    for row, one in zip(prints.signatures, made, strict=True):
        assert row.tobytes() == (one.signature or bytes(len(row)))


def test_nothing_in_gives_empty_arrays(fingerprinter: Fingerprinter, scheme: Scheme):
    prints = fingerprinter.fingerprint_arrays([])
    assert fingerprinter.fingerprint([]) == []
    assert prints.supershingles.shape == (0, scheme.sketch.values // scheme.sketch.group_size)
    assert prints.signatures.dtype == np.uint8


def test_repairs_and_languages_are_counted(canonicalizer: Canonicalizer, scheme: Scheme):
    fingerprinter = Fingerprinter(scheme, canonicalizer)
    fingerprinter.fingerprint(["кoшка и сoбака живут дoма", UKRAINIAN, ""])
    taken = fingerprinter.meter.take()
    assert taken.counts["repairs"] == 3
    assert taken.counts["without_signature"] >= 1
    assert taken.languages == {"ru": 1, "uk": 1, "und": 1}
    assert not fingerprinter.meter.counts


def test_a_single_word_of_ten_megabytes_is_one_token(fingerprinter: Fingerprinter):
    (made,) = fingerprinter.fingerprint(["ы" * 10_000_000])
    assert (made.shingles, made.signature) == (0, b"")


def test_blocks_keep_order_and_send_giants_alone():
    items = ["a" * 3, "b" * 4, "c" * 50, "d", "e"]
    made = list(blocks(items, len, budget=8))
    assert made == [["aaa", "bbbb"], ["c" * 50], ["d", "e"]]
    assert [len(block) for block in blocks(["x"] * 5, len, budget=100, most=2)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("texts", "languages", "says"),
    [
        ("Мост закроют на ремонт", None, "give \\[text\\]"),
        (["Мост"], ["ru", "uk"], "2 languages for 1 texts"),
    ],
)
def test_what_is_no_list_of_texts_with_a_language_each_is_refused(
    fingerprinter: Fingerprinter, texts: list[str], languages: list[str] | None, says: str
):
    with pytest.raises(ConfigError, match=says):
        fingerprinter.fingerprint(texts, languages)
