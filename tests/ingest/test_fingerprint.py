"""Fingerprints of texts, and when a fingerprinter switches to compiled code."""

import base64
import json
import sys

import numpy as np
import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.documents import TEXT_BUDGET, blocks
from shinglefold.errors import ConfigError
from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter, Pipeline, index_documents, read
from shinglefold.ingest import fingerprinter as fingerprint
from shinglefold.ingest.fingerprinter import sketch_json
from shinglefold.model.scheme import Scheme, SketchOptions
from shinglefold.model.values import Fingerprint
from shinglefold.registry import make_scheme
from shinglefold.sketch.sketcher import Sketcher

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


TEXTS = [article["body"] for article in articles()]


def alone() -> Fingerprinter:
    """A fingerprinter whose canonicalizer nobody else compiles."""
    return Fingerprinter(make_scheme(), Canonicalizer(make_scheme().languages))


def test_it_switches_to_compiled_code_during_a_run_without_changing_results(monkeypatch):
    pytest.importorskip("numba")
    plain = alone()
    expected = plain.fingerprint(TEXTS * 2)
    assert not plain.canonicalizer.is_compiled
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", sum(map(len, TEXTS)))
    quick = alone()
    quick.written(TEXTS[:3])
    assert quick.fingerprint(TEXTS) + quick.fingerprint(TEXTS) == expected
    assert quick.canonicalizer.is_compiled
    assert list(quick.written(TEXTS).bytes_of()) == list(plain.written(TEXTS).bytes_of())


class TellsWhetherCompiled:
    type = "tells"

    def __init__(self, options, tools):
        self.tools = tools

    def apply(self, documents):
        return [{**document, "compiled": self.tools.fingerprinter.is_compiled} for document in documents]


@pytest.mark.long(every=16)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("given", ["file", pytest.param("list", marks=pytest.mark.long), "unknown"])
@pytest.mark.parametrize(("times", "compiled"), [(0.5, True), (3, False)])
def test_a_source_that_is_large_enough_has_it_before_the_first_document_is_worked_on(
    engine, tmp_path, monkeypatch, given, workers, times, compiled
):
    pytest.importorskip("numba")
    # A file is read some 64 KiB ahead.
    many = TEXTS * 4
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", round(times * sum(map(len, many))))
    # Blocks of a few, of which the first tells how large the source is.
    monkeypatch.setattr("shinglefold.ingest.writing.indexer.RAW_BUDGET", sum(map(len, many)) // 10)
    steps = [{"tells": {}}, {"supershingle": {"field": "body"}}]
    pipeline = Pipeline.from_json({"processors": steps}, processors={"tells": TellsWhetherCompiled})
    documents = [{"id": str(n), "body": text} for n, text in enumerate(many)]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    records = {"file": read(source), "list": documents, "unknown": iter(documents)}[given]
    assert index_documents(engine, "texts", records, pipeline, workers=workers).indexed == len(many)
    hits = engine.search("texts", {"size": 5_000})["hits"]["hits"]
    told = [hit["_source"]["compiled"] for hit in sorted(hits, key=lambda hit: int(hit["_id"]))]
    if given == "unknown":
        # Found out on the way, or never.
        assert not told[0]
    else:
        assert told == [compiled] * len(many)


def test_without_numba_numpy_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", 100)
    made = alone()
    assert not made.compile()
    assert made.fingerprint(TEXTS[:5]) == alone().fingerprint(TEXTS[:5])
    assert not made.canonicalizer.is_compiled


def test_nothing_is_imported_or_compiled_for_a_few_texts():
    import subprocess

    code = (
        "import sys; from shinglefold.ingest import Fingerprinter; "
        "from shinglefold.registry import make_scheme; "
        "Fingerprinter(make_scheme()).fingerprint(['a few words']); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "options",
    [
        SketchOptions(),
        SketchOptions(values=168, bits=4, counted=False, both_ends=False),
        SketchOptions(values=84, bits=8, groups=6, group_size=14, both_ends=False),
        SketchOptions(values=70, bits=1, groups=66, group_size=1, both_ends=False),
        SketchOptions(values=30, bits=16, groups=3, group_size=5),
        SketchOptions(values=5, bits=32, groups=1, group_size=5, both_ends=False),
    ],
)
def test_keywords_and_signatures_are_written_as_numpy_writes_them(options):
    pytest.importorskip("numba")
    from shinglefold.ingest.fingerprint_json import compiled_sketch_json

    chance = np.random.default_rng(1)
    lengths = chance.integers(0, 60, 90)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sketcher = Sketcher(options)
    made = sketcher.sketch(chance.integers(0, 2**64, offsets[-1], dtype=np.uint64), offsets)
    assert 0 < np.count_nonzero(made.valid) < 90
    assert list(compiled_sketch_json(sketcher, made)) == list(sketch_json(sketcher, made))
    assert list(compiled_sketch_json(sketcher, sketcher.sketch(np.zeros(0, np.uint64), offsets[:1]))) == []
