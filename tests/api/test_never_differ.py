"""What never differs keeps documents apart by every way on which two fingerprints are compared."""

import json

import pytest
from support.never_differ import (
    ALL,
    DOCUMENTS,
    WANTED,
    WAYS,
    by_window,
    cards,
    check_the_gate,
    groups_made_anew,
    groups_of_page,
)

import shinglefold
from shinglefold.cli.main import main
from shinglefold.errors import ConfigError, RecipeMismatch


@pytest.fixture(scope="module", params=WANTED, ids=lambda names: "+".join(names) or "nothing")
def shop(request, tmp_path_factory):
    names = list(request.param)
    with cards(tmp_path_factory.mktemp("cards"), "cards", names) as index:
        yield index, WANTED[request.param], names


@pytest.mark.parametrize("way", WAYS)
def test_what_never_differs_keeps_documents_apart(shop, way):
    index, wanted, _ = shop
    found, options = WAYS[way]
    assert found(index, options) == wanted


@pytest.mark.long(every=4)
def test_compiled_groups_heed_it_too(shop):
    pytest.importorskip("numba")
    index, wanted, _ = shop
    assert index._search.compile()
    assert by_window(index, {}) == wanted


def test_the_gate_heeds_it(shop):
    index, _, names = shop
    check_the_gate(index, names)


@pytest.mark.parametrize("pair", ["ab", "ac", "ad", "bc", "bd", "cd"])
def test_the_explanation_heeds_it(shop, pair):
    index, wanted, _ = shop
    why = index.explain(*pair)
    # Only the text of b is another one.
    otherwise = "estimate" if "b" in pair else "same_text"
    together = any(set(pair) <= group for group in wanted)
    assert (why["folds"], why["decided_by"]) == (together, otherwise if together else "facts")


def test_regrouping_heeds_it(shop):
    index, wanted, _ = shop
    assert groups_made_anew(index) == wanted


@pytest.mark.long(every=3)
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
        assert groups_of_page(index.search(ALL)) == WANTED["numbers",]


@pytest.mark.parametrize("name", ["Numbers", "number", "LETTERS", "name", "", " "])
def test_a_class_in_another_spelling_is_refused_with_what_was_meant(tmp_path, name):
    with pytest.raises(ConfigError, match=r"never_differ: .*(did you mean|an empty name)"):
        shinglefold.setup(tmp_path, "cards", text=["body"], never_differ=[name])
    if name.strip():
        shinglefold.setup(tmp_path, "cards", text=["body"], never_differ=[f"_source.{name}"])
        with shinglefold.open(tmp_path, "cards") as index:
            assert index.index([{**one, name: one["colour"]} for one in DOCUMENTS]).indexed == 4
            assert groups_of_page(index.search({**ALL, "sort": ["_doc"]})) == WANTED["colour",]


def test_a_field_that_no_document_has_is_told(tmp_path, capsys):
    file = tmp_path / "cards.jsonl"
    file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in DOCUMENTS), "utf-8")
    given = [str(file), "--field", "body", "--never-differ"]
    where = ["--index", "cards", "--engine", str(tmp_path / "engine")]
    for name, code in (("clour", 3), ("colour", 0)):
        for command in (
            ["index", *given, name, *where, "--recreate"],
            ["sign", *given, name],
            ["groups", *given, name],
        ):
            assert main(command) == code, command
            assert ("no document has the field clour" in capsys.readouterr().err) == bool(code)
        main(["doctor", "cards", *where[2:]])
        assert ("no document has the field clour" in capsys.readouterr().out) == bool(code)


def test_documents_signed_before_are_compared_as_before_until_the_backfill(tmp_path):
    shinglefold.setup(tmp_path, "cards", text=["body"], languages=["ru"])
    with shinglefold.open(tmp_path, "cards") as index:
        index.index(DOCUMENTS[:2])
    plan = shinglefold.setup(tmp_path, "cards", text=["body"], never_differ=["numbers"])
    assert dict(plan.backfills) == {"cards": 2}
    with shinglefold.open(tmp_path, "cards") as index:
        index.index(DOCUMENTS[2:])
        assert groups_of_page(index.search({**ALL, "sort": ["_doc"]})) == WANTED[()]
        assert [len(group) for group in index.groups().groups] == [len(DOCUMENTS)]
        assert not index.doctor().healthy
        assert index.backfill().counts.updated == 2
        assert index.doctor().healthy
        assert groups_of_page(index.search({**ALL, "sort": ["_doc"]})) == WANTED["numbers",]
