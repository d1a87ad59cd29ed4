"""What never differs keeps documents apart by every way on which two fingerprints are compared."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import shinglefold
from shinglefold.cli.main import main
from shinglefold.errors import ConfigError, RecipeMismatch
from shinglefold.grouping.regroup import regroup
from shinglefold.rerank import collapse

CARD = (
    "Мужские кроссовки Волна Стиль, размер {}, цвет чёрный, верх из дышащей сетки, подошва из полимера, для "
    "бега и прогулок, в комплекте запасные шнурки и мешок для обуви"
)
DOCUMENTS = [
    {"id": "a", "body": CARD.format(42), "colour": "Чёрный", "rank": 1},
    {"id": "b", "body": CARD.format(43), "colour": "чёрный", "rank": 2},
    {"id": "c", "body": CARD.format("42 "), "colour": " чёрный", "rank": 3},
    {"id": "d", "body": CARD.format("42 "), "colour": "белый", "rank": 4},
]
#: What never differs, and which documents may be in one group.
WANTED = {
    (): {frozenset("abcd")},
    ("numbers",): {frozenset("acd"), frozenset("b")},
    ("colour",): {frozenset("abc"), frozenset("d")},
    ("colour", "numbers"): {frozenset("ac"), frozenset("b"), frozenset("d")},
}
ALL = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 10}


def _groups_of_page(page: dict[str, Any]) -> set[frozenset[str]]:
    return {
        frozenset([hit["_id"], *(one["_id"] for one in hit["inner_hits"]["duplicates"]["hits"]["hits"])])
        for hit in page["hits"]["hits"]
    }


def _by_window(index: shinglefold.FoldedIndex, options: dict[str, Any]) -> set[frozenset[str]]:
    page = index.search({**ALL, "ext": {"dedup": options}})
    assert page["dedup"]["mode"] == options.get("mode", "window")
    return _groups_of_page(page)


def _by_similar(index: shinglefold.FoldedIndex, _: object) -> set[frozenset[str]]:
    return {frozenset([one, *(found.id for found in index.similar(one).matches)]) for one in "abcd"}


def _by_collapse(index: shinglefold.FoldedIndex, _: object) -> set[frozenset[str]]:
    body = {**ALL, "docvalue_fields": ["_dedup.digest", "_dedup.signature"]}
    hits = index.engine.search("cards", body)["hits"]["hits"]
    found = collapse(hits, index.recipe.scheme)
    return {frozenset(hits[at]["_id"] for at in group.members) for group in found.groups}


#: Ways that compare documents of one index.
WAYS: dict[str, tuple[Callable[..., set[frozenset[str]]], dict[str, Any]]] = {
    "window": (_by_window, {}),
    "window by text": (_by_window, {"verify": "text"}),
    "connected": (_by_window, {"linkage": "connected"}),
    "policy": (_by_window, {"representative": "prefer:colour=белый"}),
    "keywords": (_by_window, {"min_resemblance": 0, "min_shared": 1}),
    "native": (_by_window, {"mode": "native"}),
    "similar": (_by_similar, {}),
    "collapse": (_by_collapse, {}),
}


@pytest.fixture(scope="module", params=WANTED, ids=lambda names: "+".join(names) or "nothing")
def cards(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    types = {"colour": {"type": "keyword"}, "rank": {"type": "integer"}}
    names = list(request.param)
    shinglefold.setup(
        folder, "cards", text=["body"], languages=["ru"], groups=True, never_differ=names, properties=types
    )
    with shinglefold.open(folder, "cards", never_differ=names) as index:
        index.index(DOCUMENTS)
        yield index, WANTED[request.param], names


@pytest.mark.parametrize("way", WAYS)
def test_what_never_differs_keeps_documents_apart(cards, way):
    index, wanted, _ = cards
    found, options = WAYS[way]
    assert found(index, options) == wanted


def test_compiled_groups_heed_it_too(cards):
    pytest.importorskip("numba")
    index, wanted, _ = cards
    assert index._search.compile()
    assert _by_window(index, {}) == wanted


def test_the_gate_and_the_explanation_heed_it(cards):
    index, wanted, names = cards
    *told, fresh = index.gate.add_all(
        [
            *({**one, "id": f"{one['id']}2"} for one in DOCUMENTS),
            {"id": "e", "body": CARD.format(44), "colour": "чёрный", "rank": 9},
        ]
    )
    assert {verdict.status for verdict in told} == {"refused"}
    assert fresh.status == ("accepted" if "numbers" in names else "refused")
    why = index.explain("a", "b")
    apart = not any({"a", "b"} <= group for group in wanted)
    assert why["decided_by"] == ("facts" if apart else why["decided_by"])
    assert why["folds"] is not apart


def test_regrouping_heeds_it(cards):
    index, wanted, _ = cards
    regroup(index.engine, "cards")
    groups: dict[int, set[str]] = {}
    hits = index.engine.search("cards", {"size": 20, "query": {"terms": {"id": list("abcd")}}})["hits"][
        "hits"
    ]
    for hit in hits:
        groups.setdefault(hit["_source"]["_dedup"]["group"], set()).add(hit["_id"])
    assert set(map(frozenset, groups.values())) == wanted


@pytest.mark.parametrize("names", WANTED)
@pytest.mark.parametrize("form", ["texts", "signed", "parquet"])
def test_files_are_grouped_by_it(tmp_path, capsys, names, form):
    file, output = (
        tmp_path / "cards.jsonl",
        tmp_path / ("signed.parquet" if form == "parquet" else "signed.jsonl"),
    )
    file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in DOCUMENTS), "utf-8")
    facts = [part for name in names for part in ("--never-differ", name)]
    if form != "texts":
        ids = ["--only-ids"] if form == "parquet" else []
        assert main(["sign", str(file), "-o", str(output), *ids, *facts]) == 0
        file, facts = output, []
    capsys.readouterr()
    assert main(["groups", str(file), "--json", *facts]) == 0
    found = {frozenset(group["ids"]) for group in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found == {group for group in WANTED[names] if len(group) > 1}


def test_texts_in_memory_are_compared_by_it():
    texts = [one["body"] for one in DOCUMENTS]
    assert shinglefold.groups(texts, languages=["ru"]) == [[0, 1, 2, 3]]
    assert shinglefold.groups(texts, languages=["ru"], never_differ=["numbers"]) == [[0, 2, 3]]
    assert len(shinglefold.pairs(texts, languages=["ru"], never_differ=["numbers"])) == 3
    told = shinglefold.compare(texts[0], texts[1], languages=["ru"], never_differ=["numbers"])
    assert (told.folds, told.decided_by) == (False, "facts")
    with pytest.raises(ConfigError, match="colour"):
        shinglefold.pairs(texts, never_differ=["colour"])  # type: ignore[list-item]


def test_an_index_says_what_never_differs(tmp_path):
    shinglefold.setup(tmp_path, "cards", text=["body"], languages=["ru"], profile="products")
    with pytest.raises(RecipeMismatch, match=r"never differs.*numbers"):
        shinglefold.open(tmp_path, "cards", never_differ=["colour"])
    with pytest.raises(RecipeMismatch, match=r"profile.*products"):
        shinglefold.open(tmp_path, "cards", profile="chunks")
    with pytest.raises(ConfigError, match="products"):
        shinglefold.setup(tmp_path, "cards", text=["body"], profile="product")
    with shinglefold.open(tmp_path, "cards", profile="products") as index:
        index.index(DOCUMENTS)
        assert _groups_of_page(index.search(ALL)) == WANTED["numbers",]


def test_documents_signed_before_are_compared_as_before_until_the_backfill(tmp_path):
    shinglefold.setup(tmp_path, "cards", text=["body"], languages=["ru"])
    with shinglefold.open(tmp_path, "cards") as index:
        index.index(DOCUMENTS[:2])
    plan = shinglefold.setup(tmp_path, "cards", text=["body"], never_differ=["numbers"])
    assert plan.changes
    with shinglefold.open(tmp_path, "cards") as index:
        index.index(DOCUMENTS[2:])
        assert _groups_of_page(index.search({**ALL, "sort": ["_doc"]})) == WANTED[()]
        assert not index.doctor().healthy
        assert index.backfill().counts.updated == 2
        assert index.doctor().healthy
        assert _groups_of_page(index.search({**ALL, "sort": ["_doc"]})) == WANTED["numbers",]
