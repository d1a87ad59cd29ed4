"""Distinct chunks for a language model: nothing is lost, nothing is reordered, and facts stay apart."""

import asyncio
import json
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples
from support.soon import soon

from shinglefold import fold_chunks, fold_chunks_async
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

WORDS = (
    *("river", "stone", "market", "winter", "letter", "garden", "engine"),
    *("window", "bridge", "summer", "teacher", "island", "planet", "forest"),
)


def text_of(seed: int, words: int = 60) -> str:
    """Return random words, others for each seed."""
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) + rng.choice("abcdefgh") for _ in range(words))


LAW = (
    "Работодатель обязан предоставить работнику ежегодный оплачиваемый отпуск продолжительностью 28 "
    "календарных дней, и отпуск может быть разделён на части по соглашению сторон трудового договора."
)
#: The better chunk, the other one, and whether the other one is folded under it.
PAIRS = {
    "equal": (LAW, LAW, True),
    "other endings": (LAW, LAW.replace("работнику", "работникам").replace("договора", "договоров"), True),
    "Latin letters": (LAW, LAW.replace("о", "o").replace("а", "a"), True),
    "invisible characters in names": (
        f"Натисніть Параметри Мережі. {text_of(9)}",
        f"Натисніть Пара\u200bметри Ме\u00adре\u2060жі. {text_of(9)}",
        True,
    ),
    "full width": (f"Press Ctrl. {text_of(9)}", f"Press Ｃｔｒｌ. {text_of(9)}", True),
    "other number": (LAW, LAW.replace("28", "31"), False),
    "another unit": (f"a ban of 5 days {text_of(9)}", f"a ban of 5 years {text_of(9)}", False),
    "another currency": (f"штраф 5 тыс. руб. {text_of(9)}", f"штраф 5 тыс. долл. {text_of(9)}", False),
    "another scale": (f"fined $5 million {text_of(9)}", f"fined $5 {text_of(9)}", False),
    "a date written otherwise": (f"law of 26.11.2026 {text_of(9)}", f"law of 26/11/2026 {text_of(9)}", True),
    "day and month exchanged": (f"law of 2026-01-05 {text_of(9)}", f"law of 2026-05-01 {text_of(9)}", False),
    "exchanged, with points": (f"law of 5.1.2026 {text_of(9)}", f"law of 01.05.2026 {text_of(9)}", False),
    "exchanged, in another order": (
        f"law of 2026-01-05 {text_of(9)}",
        f"law of 1.5.2026 {text_of(9)}",
        False,
    ),
    "a date in another order": (f"law of 2026-01-05 {text_of(9)}", f"law of 5.1.2026 {text_of(9)}", True),
    "one of two dates": (f"2026-01-05, 2026-05-01 {text_of(9)}", f"5.1.2026 {text_of(9)}", True),
    "another release": (f"install 1.2.3 {text_of(9)}", f"install 1.3.2 {text_of(9)}", False),
    "a ratio turned round": (f"mix it 1.5/2.5 {text_of(9)}", f"mix it 2.5/1.5 {text_of(9)}", False),
    "days exchanged": (
        f"closed on 5 January, 2 March {text_of(9)}",
        f"closed on 2 January, 5 March {text_of(9)}",
        False,
    ),
    "values exchanged": (f"A: 3, B: 0 {text_of(9)}", f"A: 0, B: 03 {text_of(9)}", False),
    "one value a part of the other": (f"A: 1, B: 15 {text_of(9)}", f"A: 15, B: 1 {text_of(9)}", False),
    "rows in another order": (f"Kyiv 5, Lviv 7 {text_of(9)}", f"Lviv 7, Kyiv 5 {text_of(9)}", True),
    "in another order by units": (f"5 cups\n7 lids\n{text_of(9)}", f"7 lids\n5 cups\n{text_of(9)}", True),
    "a telephone written otherwise": (f"8 800 555 35 35 {text_of(9)}", f"8-800-555-35-35 {text_of(9)}", True),
    "a unit of two words": (f"54 кв. м {text_of(9)}", f"54 кв. см {text_of(9)}", False),
    "a part of a number": (f"1500 people {text_of(9)}", f"500 people {text_of(9)}", False),
    "an exponent": (f"x² {text_of(9)}", f"x³ {text_of(9)}", False),
    "more and less": (f"More than 5 days {text_of(9)}", f"Less than 5 days {text_of(9)}", False),
    "no more and no less": (f"no more than 5 days {text_of(9)}", f"no less than 5 days {text_of(9)}", False),
    "Russian more and less": (f"не более чем 5 дней, {LAW}", f"не менее чем 5 дней, {LAW}", False),
    "Ukrainian more and less": (f"більше ніж 5 днів {text_of(9)}", f"менше ніж 5 днів {text_of(9)}", False),
    "Chinese more and less": ("罚款超过5万元，并责令其改正" * 3, "罚款不到5万元，并责令其改正" * 3, False),
    "more and no more": (f"no more than 5 days {text_of(9)}", f"more than 5 days {text_of(9)}", False),
    "Russian more and no more": (f"срок не более чем 5 дней, {LAW}", f"срок более чем 5 дней, {LAW}", False),
    "more before the first word": (f"{text_of(9)} more than 5 days", f"5 days {text_of(9)}", False),
    "a part of a number at the edge": (f"{text_of(9)} 15 days", f"5 days {text_of(9)}", False),
    "a word that ends like more": (f"moreover 5 days {text_of(9)}", f"over 5 days {text_of(9)}", False),
    "a minus at the edge": (f"from 18 -44 degrees {text_of(9)}", f"-44 degrees {text_of(9)}", False),
    "a scale behind the edge": (f"{text_of(9)} it costs 5 million", f"{text_of(9)} it costs 5", False),
    "another unit behind a slash": (
        f"speed 60 km / h {text_of(9)}",
        f"speed 60 km / min {text_of(9)}",
        False,
    ),
    "another unit behind a scale": (f"5 Тыс. кв. км {text_of(9)}", f"5 Тыс. кв. м {text_of(9)}", False),
    "another unit behind a Chinese scale": (
        f"{'员工每年享有带薪休假可以分段' * 3}罚款 5 亿 元，并责令其改正",
        f"{'员工每年享有带薪休假可以分段' * 3}罚款 5 亿 米，并责令其改正",
        False,
    ),
    "a number again": (
        f"5 cups {text_of(9)} 7 spoons {text_of(8)}",
        f"a 5 pots {text_of(9)} b 5 pans {text_of(8)}",
        True,
    ),
    "a unit of two numbers": (f"приём с 10 до 14 ч, {LAW}", f"приём с 10 ч до 14 ч, {LAW}", True),
    "moved passages": (
        text_of(9),
        " ".join(word for at in range(57, -1, -3) for word in text_of(9).split()[at : at + 3]),
        True,
    ),
    "another word beside a number": (f"a ban of 5 days {text_of(9)}", f"a stop of 5 days {text_of(9)}", True),
    "a number at the cut": (f"{text_of(9)} within 5 days", f"{text_of(9)} within 5", True),
    "other number with its unit": (f"128гб {text_of(7)}", f"256гб {text_of(7)}", False),
    "a name that is a part of a word": (f"JoAnn Annual {text_of(8)}", f"the Ann {text_of(8)}", False),
    "a window that overlaps by nine tenths": (text_of(1, 100), " ".join(text_of(1, 110).split()[10:]), True),
    "a window that overlaps by half": (text_of(1, 100), " ".join(text_of(1, 150).split()[50:]), False),
    "a part of it": (f"{text_of(2)} {LAW}", LAW, True),
    "more than it": (LAW, f"{LAW} {text_of(2, 120)}", False),
    "another section": (text_of(3), text_of(4), False),
    "another product": (
        f"The drill of Makita has a brushless motor. {text_of(5)}",
        f"The drill of Metabo has a brushless motor. {text_of(5)}",
        False,
    ),
    "a name with another ending": (
        f"Эту дрель продаёт фирма из города Москва с доставкой. {text_of(6)}",
        f"Эту дрель продаёт фирма из города Москвы с быстрой доставкой. {text_of(6)}",
        True,
    ),
    "Chinese": ("员工每年享有二十八天带薪休假" * 3, "員工每年享有二十八天帶薪休假" * 3, True),
    "other words beside a Chinese name": (
        f"{'员工每年享有带薪休假可以分段' * 3}，在使用Wiki时按规定办理",
        f"{'员工每年享有带薪休假可以分段' * 3}，在打开Wiki后按规定办理",
        True,
    ),
    "another name in Chinese": (
        f"{'员工每年享有带薪休假可以分段' * 3}，在使用Wiki时按规定办理",
        f"{'员工每年享有带薪休假可以分段' * 3}，在使用Blog时按规定办理",
        False,
    ),
    "two people": (f"{text_of(9)}. John Smith signed it.", f"{text_of(9)}. Mary Smith signed it.", False),
    "two cards": (f"Name: Anna. {text_of(9)}", f"Name: Olha. {text_of(9)}", False),
    "a heading in capitals": (f"Annual leave. {text_of(9)}", f"Annual Leave. {text_of(9)}", True),
    "a number in words": (
        f"It takes twenty days. {text_of(9)}",
        f"It takes thirty days. {text_of(9)}",
        False,
    ),
    "in Russian words": (f"не больше двух раз, {LAW}", f"не больше трёх раз, {LAW}", False),
    "in Ukrainian words": (
        "Працівник має право на відпустку, яку він може поділити, щонайменше на п'ять днів.",
        "Працівник має право на відпустку, яку він може поділити, щонайменше на шість днів.",
        False,
    ),
    "another unit behind words": (f"for two weeks {text_of(9)}", f"for two months {text_of(9)}", False),
    "an ordinal": (f"the first article {text_of(9)}", f"the second article {text_of(9)}", False),
    "a lone Chinese digit": ("罚款并责令其在五天内改正" * 3, "罚款并责令其在六天内改正" * 3, False),
    "another Russian month": (f"собрание в марте, {LAW}", f"собрание в апреле, {LAW}", False),
    "a month in another case": (f"собрание в марте, {LAW}", f"собрание к марту, {LAW}", True),
    "another Russian weekday": (f"приём по вторникам, {LAW}", f"приём по средам, {LAW}", False),
    "another Ukrainian month": (
        "Працівник має право на відпустку, яку він може поділити, починаючи з березня кожного року.",
        "Працівник має право на відпустку, яку він може поділити, починаючи з квітня кожного року.",
        False,
    ),
    "another Ukrainian weekday": (
        "Працівник має право на відпустку, яку він може поділити, починаючи з понеділка.",
        "Працівник має право на відпустку, яку він може поділити, починаючи з п'ятниці.",
        False,
    ),
    "another floor": (
        f"rooms on the second floor, {text_of(9)}",
        f"rooms on the third floor, {text_of(9)}",
        False,
    ),
    "another Russian floor": (f"на втором этаже, {LAW}", f"на третьем этаже, {LAW}", False),
    "another Ukrainian floor": (
        "Працівник має право на відпустку, яку він може поділити, після другого року роботи.",
        "Працівник має право на відпустку, яку він може поділити, після п'ятого року роботи.",
        False,
    ),
    "a number in other words": (f"двух раз {LAW}", f"двумя разами {LAW}", True),
    "yes and no": (f"Is it allowed? Yes. {text_of(9)}", f"Is it allowed? No. {text_of(9)}", False),
    "true and false": (f'{{"enabled": true}} {text_of(9)}', f'{{"enabled": false}} {text_of(9)}', False),
    "the opposite": (f"they must repair it {text_of(9)}", f"they must not repair it {text_of(9)}", False),
    "the opposite of it": (f"they don't repair it {text_of(9)}", f"they repair it {text_of(9)}", False),
    "the Russian opposite": (LAW.replace("может", "не может"), LAW, False),
    "the Chinese opposite": ("员工每年享有带薪休假可以分段" * 3, "员工每年享有带薪休假不可以分段" * 3, False),
    "the same with a negation": (f"{text_of(9)} not {LAW}", f"{text_of(9)} not {LAW} more", True),
    "nothing but marks": ("— * —", "* * *", False),
    "equal marks": ("😀😀😀", "😀😀😀", True),
    "nothing": ("", "", False),
    "one long word": ("a" * 5_000, "a" * 5_000, True),
    "a word": ("Вода", "воды", True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_adds_nothing_is_folded_under_the_better_chunk(name):
    better, other, folds = PAIRS[name]
    given = [
        {"id": "a", "text": better, "score": 2.0, "metadata": {"url": "https://a"}},
        {"id": "b", "text": other, "score": 1.0, "metadata": {"url": "https://b"}},
    ]
    found = fold_chunks(given)
    assert found.complete
    first, *rest = found.chunks
    assert {name: first[name] for name in given[0]} == given[0]
    assert [one["id"] for one in rest] == ([] if folds else ["b"])
    if folds:
        (source,) = first["sources"]
        assert 0 < source.pop("resemblance") <= 1
        assert source == {"id": "b", "score": 1.0, "metadata": {"url": "https://b"}}
    json.dumps(found.chunks)


CYCLE: dict[str, object] = {}
CYCLE["self"] = CYCLE

lists = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=25)


def chunks_of(made):
    """Return chunks of a few texts, some with a word more at the end."""
    return [
        {"id": str(at), "text": text_of(text) + " more" * more, "score": -at}
        for at, (text, more) in enumerate(made)
    ]


@given(lists, st.integers(1, 8))
@settings(max_examples=examples(60), deadline=None)
def test_nothing_is_lost_and_the_order_stays(made, k):
    given = chunks_of(made)
    found = fold_chunks(given)
    shown = [chunk["id"] for chunk in found.chunks]
    folded = [source["id"] for chunk in found.chunks for source in chunk["sources"]]
    assert sorted(shown + folded, key=int) == [chunk["id"] for chunk in given]
    assert shown == sorted(shown, key=int)
    assert found.read == len(given)
    assert fold_chunks(given) == found
    assert [chunk["id"] for chunk in fold_chunks(given, k).chunks] == shown[:k]
    again = fold_chunks(found.chunks).chunks
    assert [chunk["id"] for chunk in again] == shown
    assert [chunk["sources"] for chunk in again] == [chunk["sources"] for chunk in found.chunks]


@given(lists, st.integers(1, 8), st.integers(0, 6), st.sampled_from(["all", "next"]))
@settings(max_examples=examples(60), deadline=None)
def test_more_is_fetched_until_there_are_k(made, k, begun, way):
    given = chunks_of(made)
    place, calls = begun, []

    def fetch(count):
        nonlocal place
        calls.append(count)
        assert count > 0
        begin, place = place, place + count
        return given[:count] if way == "all" else given[begin:place]

    async def awaited(count):
        return fetch(count)

    whole = [chunk["id"] for chunk in fold_chunks(given).chunks]
    found = fold_chunks(given[:begun], k, fetch)
    assert [chunk["id"] for chunk in found.chunks] == whole[:k]
    assert found.complete == (len(whole) >= k)
    place = begun
    assert asyncio.run(fold_chunks_async(given[:begun], k, awaited)) == found
    if len(fold_chunks(given[:begun]).chunks) >= k:
        assert not calls


def test_reading_ends_at_the_limit_and_says_so(caplog):
    def fetch(count):
        return [{"id": str(at), "text": LAW} for at in range(count)]

    found = fold_chunks([], 2, fetch, most=50)
    assert (len(found.chunks), found.read, found.complete) == (1, 50, False)
    (logged,) = caplog.messages
    assert logged.startswith("read 50 chunks, as many as `most` allows, and found 1 distinct ones of 2")
    assert fold_chunks([], 2, lambda count: fetch(2 * count), most=50).read == 50
    caplog.clear()
    # Nothing is left to say where there are no more, or enough.
    assert not fold_chunks([], 2, lambda count: fetch(min(count, 40)), most=50).complete
    assert fold_chunks([], 1, fetch, most=50).complete
    assert not caplog.messages


def test_the_end_of_an_iterator_is_the_end(caplog):
    lists = [[{"id": 1, "text": LAW}], [{"id": 2, "text": text_of(1)}]]

    async def each():
        for one in lists:
            yield one

    pages, awaited = iter(lists), each()
    found = fold_chunks([], 5, lambda _: next(pages))
    assert ([chunk["id"] for chunk in found.chunks], found.read, found.complete) == ([1, 2], 2, False)
    assert asyncio.run(fold_chunks_async([], 5, lambda _: anext(awaited))) == found
    assert not caplog.messages


@pytest.mark.long
def test_copies_that_come_one_by_one_cost_no_more_than_they_are():
    count = iter(range(1_000))

    def fetch(_wanted):
        at = next(count)
        return [{"id": at, "text": f"{text_of(1, 200)} {text_of(at, 1)}"}]

    with soon():
        found = fold_chunks([], 2, fetch, most=400)
    assert (len(found.chunks), found.read) == (1, 400)


def test_stored_fingerprints_decide_where_all_chunks_bring_them():
    texts = [text_of(1), text_of(2), text_of(1) + " more", LAW]
    stored = [one.to_field() for one in Fingerprinter(make_scheme()).fingerprint(texts)]
    # Texts that say something else show that they are not read.
    given = [{"id": at, "text": str(at), "_dedup": one} for at, one in enumerate(stored)]
    found = fold_chunks(given)
    assert [[chunk["id"], [one["id"] for one in chunk["sources"]]] for chunk in found.chunks] == [
        [0, [2]],
        [1, []],
        [3, []],
    ]
    assert found.chunks[0]["sources"][0]["resemblance"] > 0.8
    assert "_dedup" not in found.chunks[0]["sources"][0]
    of_texts = fold_chunks([*given[:-1], {"id": 3, "text": "0"}])
    assert [chunk["id"] for chunk in of_texts.chunks] == [0, 1, 2]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("count", "shown"), [(600, [0]), (21_000, [0, 1])])
def test_long_chunks_fold_by_their_shingles_as_documents_do(count, shown):
    letters = "abcdefghjk"
    words = ["".join(letters[int(digit)] for digit in f"{at:05}") for at in range(count)]
    moved = [word for at in range(count - 3, -1, -3) for word in words[at : at + 3]]
    changed = [f"{word}lm" if at % 9 == 0 else word for at, word in enumerate(words)]
    texts = [" ".join(one) for one in (words, moved, changed)]
    given = [{"id": at, "text": text} for at, text in enumerate(texts)]
    assert [chunk["id"] for chunk in fold_chunks(given).chunks] == shown
    if count > 20_000:
        stored = [one.to_field() for one in Fingerprinter(make_scheme()).fingerprint(texts)]
        signed = [{**chunk, "_dedup": one} for chunk, one in zip(given, stored, strict=True)]
        assert [chunk["id"] for chunk in fold_chunks(signed).chunks] == shown


def test_a_chunk_that_comes_again_counts_once():
    one, other = {"id": 1, "text": LAW}, {"text": LAW, "metadata": {"page": 2}}
    third = {"id": 1, "text": LAW, "url": "https://b"}
    found = fold_chunks([one, other, {**one, "score": 0.5}, dict(other), third, {**third, "score": 0.1}])
    assert found.read == 3
    # Each source can be named: by its id, or by its rank.
    assert [{**source, "resemblance": 1} for source in found.chunks[0]["sources"]] == [
        {"rank": 2, "metadata": {"page": 2}, "resemblance": 1},
        {"id": 1, "url": "https://b", "resemblance": 1},
    ]


@pytest.mark.parametrize("metadata", [{1: 2, "a": 3}, {(1, 2): 3}, CYCLE], ids=["keys", "tuple", "cycle"])
def test_a_chunk_that_comes_again_counts_once_whatever_its_metadata_is(metadata):
    chunk = {"text": LAW, "metadata": metadata}
    assert fold_chunks([chunk, {**chunk, "score": 1}, {**chunk, "id": 2}]).read == 2


def test_other_windows_with_the_id_of_their_document_are_not_lost():
    windows = [{"id": "a.html", "text": text_of(seed)} for seed in range(3)]
    found = fold_chunks([*windows, dict(windows[1])])
    assert ([chunk["text"] for chunk in found.chunks], found.read) == ([one["text"] for one in windows], 3)


async def sleeping(_count):
    return []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"chunks": "text"}, "chunks: expected a list of chunks"),
        ({"chunks": ["text"]}, r'chunks\[0\]: expected an object whose "text" is a string'),
        ({"chunks": [{"text": None}]}, 'an object whose "text" is a string'),
        (
            {"chunks": [{"text": LAW, "sources": "a.pdf"}]},
            r"chunks\[0\].sources: expected a list, got 'a.pdf'",
        ),
        ({"chunks": [{"text": LAW, "sources": None}]}, r"chunks\[0\].sources: expected a list, got None"),
        ({"chunks": iter([])}, r"chunks: expected a list of chunks; list\(…\) makes one"),
        ({"chunks": [], "k": 1, "fetch_more": []}, "fetch_more: expected a function"),
        ({"chunks": [], "k": 1, "fetch_more": sleeping}, "fold_chunks_async takes an asynchronous function"),
        ({"chunks": [], "k": 0}, "k"),
        ({"chunks": [], "contained": 2}, "contained"),
        ({"chunks": [], "contained": None}, "contained"),
        ({"chunks": [{"text": LAW}] * 3, "most": 2}, "3 chunks, and at most 2 are read: give fewer"),
        ({"chunks": [], "similarity": "high"}, "similarity"),
        ({"chunks": [], "fetch_more": lambda _: []}, "fetch_more needs k"),
        ({"chunks": [], "k": 1, "fetch_more": lambda _: None}, "fetch_more: expected a list of chunks"),
    ],
)
def test_wrong_arguments_are_told(arguments, told):
    with pytest.raises(ConfigError, match=told):
        fold_chunks(**arguments)


def test_an_awaited_call_tells_of_a_function_that_is_not_awaited():
    with pytest.raises(ConfigError, match="fetch_more: expected an asynchronous function; fold_chunks takes"):
        asyncio.run(fold_chunks_async([], 1, lambda _: []))


_FIRST_CALL = """
import json, sys, time
import shinglefold

def spent(chunks):
    start = time.process_time()
    shinglefold.fold_chunks(chunks)
    return time.process_time() - start

chunks, signed, unwanted = json.loads(sys.argv[1])
shinglefold.warm()
loaded = set(sys.modules)
times = [spent(chunks) for _ in range(4)]
spent(signed)
print(json.dumps([times, sorted(set(sys.modules) - loaded), sorted(loaded.intersection(unwanted))]))
"""
_UNWANTED = [
    *("numba", "numpy.ma", "asyncio", "shinglefold.canon.compiled_kernel"),
    *("shinglefold.engines", "shinglefold.passages", "shinglefold.grouping", "shinglefold.rerank.similar"),
]


def test_the_first_call_is_as_fast_as_others_once_it_is_warm():
    """Pairs in doubt, numbers and names need tables (50 ms); compiled code and engines are not needed."""
    chunks = [{"text": text} for name in PAIRS for text in PAIRS[name][:2]]
    chunks += [{"text": f"{text_of(11, 30)} {text_of(seed, 6)} {text_of(12, 30)}"} for seed in (13, 14)]
    texts = [text_of(1), text_of(1) + " more"]
    stored = [one.to_field() for one in Fingerprinter(make_scheme()).fingerprint(texts)]
    signed = [{"text": text, "_dedup": one} for text, one in zip(texts, stored, strict=True)]
    command = [sys.executable, "-c", _FIRST_CALL, json.dumps([chunks, signed, _UNWANTED])]
    tries = [json.loads(subprocess.check_output(command, text=True)) for _ in range(3)]
    assert [(loaded, unwanted) for _, loaded, unwanted in tries] == [([], [])] * 3
    assert any(times[0] < 1.5 * min(times) + 0.04 for times, _, _ in tries), tries
