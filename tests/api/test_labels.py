"""A label of a language keeps no two texts apart, wherever documents are compared."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

import shinglefold
from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import Refused
from shinglefold.examples import articles

PAGE = (
    "Откройте меню Tools Options Writer General и выберите Update links when loading Always. Затем нажмите "
    "Apply и OK. Параметр хранится в файле registrymodifications xcu каталога user profile. Для макросов "
    "выберите уровень Macro Security Medium."
)
#: Most words are English in the first text, and Russian in the second.
TEXTS = (PAGE, f"{PAGE} Затем перезапустите программу снова.")
DOCUMENTS = [
    {"id": name, "title": "Обновление связей", "body": text} for name, text in zip("ab", TEXTS, strict=True)
]
BODY = {"query": {"match": {"title": "связей"}}}


#: What the documents declare, by the languages that are recorded then.
DECLARED: dict[tuple[str, str], list[dict[str, str]]] = {
    ("en", "ru"): [{}, {}],
    ("ru", "uk"): [{"lang": "ru_RU"}, {"lang": "uk"}],
    ("zh", "ru"): [{"lang": "zh-TW"}, {"lang": "Klingon"}],
}


@pytest.fixture(scope="module", params=DECLARED, ids="-".join)
def manual(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldedIndex]:
    made = tmp_path_factory.mktemp("labels")
    shinglefold.setup(made, "manual", text=["title", "body"], groups=True)
    pages = [page | declared for page, declared in zip(DOCUMENTS, DECLARED[request.param], strict=True)]
    with shinglefold.open(made, "manual") as index:
        assert index.index([*pages, *islice(articles(), 20)]).failed == 0
        stored = [index.stored_hit(name)["_source"]["_dedup"]["lang"] for name in "ab"]
        assert tuple(stored) == request.param
        yield index


def _shown(index: FoldedIndex, **options: Any) -> int:
    return len(index.search({**BODY, "ext": {"dedup": options}})["hits"]["hits"])


def _refused(index: FoldedIndex, **document: Any) -> bool:
    with pytest.raises(Refused) as refusal:
        index.add({**DOCUMENTS[1], "id": "c", **document})
    return refusal.value.like is not None


#: By name, whether the two are one.
WAYS: dict[str, Callable[[FoldedIndex], bool]] = {
    "a window": lambda index: _shown(index) == 1,
    "a window, compared by texts": lambda index: _shown(index, verify="text") == 1,
    "a window of chains": lambda index: _shown(index, linkage="connected") == 1,
    "stored groups": lambda index: _shown(index, mode="native") == 1,
    "similar documents": lambda index: [one.id for one in index.similar("a").matches] == ["b"],
    "the gate": _refused,
    "regrouping": lambda index: (
        ["a", "b"] in [sorted(key.id for key in one) for one in index.groups().groups]
    ),
    "an explanation": lambda index: index.explain("a", "b")["folds"] is True,
    "texts alone": lambda _: shinglefold.groups(list(TEXTS)) == [[0, 1]],
}


@pytest.mark.long(every=6)
@pytest.mark.parametrize("way", WAYS)
def test_near_copies_of_two_labels_are_one(manual: FoldedIndex, way: str) -> None:
    assert WAYS[way](manual)
