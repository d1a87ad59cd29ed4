"""A fingerprint that is of another text than its document has: where texts are read, the hit stands alone."""

import random
import re

import pytest

import shinglefold
from shinglefold.errors import InputError

_WORDS = re.findall(
    r"\w+", "bridge river closed until monday because water rises buses take another way north station"
)


def _text(seed: int, words: int = 60) -> str:
    chance = random.Random(seed)
    return " ".join(f"{chance.choice(_WORDS)}{chance.randrange(9)}" for _ in range(words))


def _documents() -> list[dict]:
    """Three copies of one text, and another text."""
    return [{"id": f"copy-{n}", "title": "Bridge", "body": _text(1)} for n in range(3)] + [
        {"id": "other", "title": "Bridge", "body": _text(2)}
    ]


@pytest.fixture
def site(tmp_path):
    shinglefold.setup(tmp_path, "site", text=["title", "body"], languages=["en"])
    with shinglefold.open(tmp_path, "site") as site:
        site.index(_documents())
        yield site


def _replace(site, id_: str, **changed) -> None:
    site.engine.bulk([{"_op_type": "update", "_index": "site", "_id": id_, "doc": changed}])
    site.engine.refresh("site")


def _search(site, **options):
    body = {"query": {"match": {"title": "bridge"}}, "sort": [{"id": "asc"}], "size": 10}
    page = site.search({**body, "ext": {"dedup": {"verify": "text", **options}}})
    groups = [
        [one["_id"] for one in hit["inner_hits"]["duplicates"]["hits"]["hits"]]
        for hit in page["hits"]["hits"]
    ]
    return groups, page["dedup"]


@pytest.mark.parametrize(
    ("stale", "groups"),
    [
        ((), [["copy-0", "copy-1", "copy-2"], ["other"]]),
        (("copy-1",), [["copy-0", "copy-2"], ["copy-1"], ["other"]]),
        (("copy-0",), [["copy-0"], ["copy-1", "copy-2"], ["other"]]),
        (("copy-0", "copy-1", "copy-2"), [["copy-0"], ["copy-1"], ["copy-2"], ["other"]]),
    ],
)
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_a_stale_hit_stands_alone_and_is_counted(site, stale, groups, linkage):
    for number, id_ in enumerate(stale):
        _replace(site, id_, body=_text(10 + number))
    found, counters = _search(site, linkage=linkage)
    assert (found, counters["stale"]) == (groups, len(stale))
    assert (counters["groups"], counters["folded"]) == (len(groups), 4 - len(groups))
    assert counters["groups_total"]["value"] == len(groups)


def test_a_stale_representative_gives_way_to_a_member_that_was_not_fetched(site):
    _replace(site, "copy-0", body=_text(10))
    _replace(site, "copy-1", body=_text(11))
    found, counters = _search(site, members=0)
    assert (found, counters["stale"]) == ([["copy-0"], ["copy-1"], ["copy-2"], ["other"]], 2)


@pytest.mark.parametrize(
    "changed",
    [{"_dedup": None}, {"body": _text(20), "_dedup": None}],
)
def test_a_writer_that_clears_the_fingerprint_shows_the_document(site, changed):
    _replace(
        site,
        "copy-1",
        **changed,
    )
    assert _search(site)[0] == [["copy-0", "copy-2"], ["copy-1"], ["other"]]
    assert _search(site)[1]["stale"] == 0


def test_texts_that_are_not_shown_are_read(site):
    _replace(site, "copy-1", body=_text(10))
    body = {"query": {"match": {"title": "bridge"}}, "_source": ["title"]}
    page = site.search({**body, "ext": {"dedup": {"verify": "text"}}})
    assert (page["dedup"]["stale"], len(page["hits"]["hits"])) == (1, 3)


def test_explanations_and_similar_documents_know_it(site):
    _replace(site, "copy-1", body=_text(10))
    told = site.explain("copy-0", "copy-1")
    assert (told["folds"], told["text"]["folds"], told["b"].get("stale")) == (False, False, True)
    assert site.explain("copy-0", "copy-2")["folds"]
    with pytest.raises(InputError, match="'copy-1' is of another text"):
        site.similar("copy-1")


@pytest.mark.parametrize("format_", [None, "html"])
def test_markup_and_declared_languages_make_no_fingerprint_stale(tmp_path, format_):
    shinglefold.setup(tmp_path, "site", text=["title", "body"], languages=["en", "ru"])
    with shinglefold.open(tmp_path, "site") as site:
        site.engine.bulk(
            {
                "_op_type": "index", "_index": "site", "_id": f"{n}", "id": f"{n}", "title": "Bridge",
                "body": f"<p>{_text(1)} река &amp; мост</p>", "lang": lang,
                **({"format": format_} if format_ else {}),
            }
            for n, lang in enumerate(("en", "ru", "xx", None))
        )  # fmt: skip
        site.engine.refresh("site")
        site.backfill()
        assert site.doctor().healthy
        assert _search(site)[1]["stale"] == 0
