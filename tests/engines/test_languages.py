"""Words are found by their lemma, Chinese by its characters, and marked where they stand."""

from collections.abc import Iterator

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import make_scheme

_PAGES = {
    "uk": "Переклади документів зберігаються на сервері. Людей багато, а під'їзд один.",
    "ru": "Настройки серверов хранятся в файлах. Люди не спешат.",
    "zh": "用戶可以打開文檔。數據庫很大。",
    "en": "Servers keep their settings in files.",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    scheme = make_scheme(options=CanonOptions(drop_function_words=False))
    with EmbeddedEngine(tmp_path_factory.mktemp("pages"), Canonicalizer.of(scheme)) as engine:
        engine.create_index("pages", {"properties": {"body": {"type": "text"}}}, {})
        engine.bulk(
            {"_index": "pages", "_id": id_, "_source": {"body": body}} for id_, body in _PAGES.items()
        )
        engine.refresh("pages")
        yield engine


def _found(engine: EmbeddedEngine, query: str, kind: str = "match") -> set[str]:
    response = engine.search("pages", {"query": {kind: {"body": query}}})
    return {hit["_id"] for hit in response["hits"]["hits"]}


def _marked(engine: EmbeddedEngine, query: str, kind: str = "match") -> dict[str, list[str]]:
    options = {"fields": {"body": {"number_of_fragments": 0}}, "pre_tags": ["["], "post_tags": ["]"]}
    response = engine.search("pages", {"query": {kind: {"body": query}}, "highlight": options})
    return {hit["_id"]: hit["highlight"]["body"] for hit in response["hits"]["hits"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("переклад", {"uk"}),
        ("перекладами", {"uk"}),
        ("документ", {"uk"}),
        ("під’їзду", {"uk"}),
        ("настройка", {"ru"}),
        ("файл", {"ru"}),
        ("ФАЙЛУ", {"ru"}),
        ("用户", {"zh"}),
        ("数据库", {"zh"}),
        ("server", {"en"}),
        ("setting", {"en"}),
    ],
)
def test_finds_any_form_of_a_word(pages, query, expected):
    assert _found(pages, query) == expected


def test_a_query_too_short_to_tell_its_language_is_read_in_each(pages):
    # Russian has another word for one of them, Ukrainian has not; "людей" alone could be either.
    assert _found(pages, "людей") == {"uk", "ru"}
    assert _found(pages, "сервер") == {"uk", "ru"}


def test_phrases_are_lemmas_in_order(pages):
    assert _found(pages, "переклад документа", "match_phrase") == {"uk"}
    assert _found(pages, "документ переклад", "match_phrase") == set()
    assert _found(pages, "打开文档", "match_phrase") == {"zh"}
    assert _found(pages, "文档打开", "match_phrase") == set()
    assert _found(pages, "in files", "match_phrase") == {"en"}


def test_marks_the_words_of_the_source_whatever_their_form(pages):
    assert _marked(pages, "переклад документ") == {
        "uk": ["[Переклади] [документів] зберігаються на сервері. Людей багато, а під'їзд один."]
    }
    assert _marked(pages, "під’їзди")["uk"][0].endswith("а [під'їзд] один.")
    assert _marked(pages, "数据", "match_phrase") == {"zh": ["用戶可以打開文檔。[數][據]庫很大。"]}


def test_empty_and_wordless_queries_find_nothing(pages):
    for query in ("", "   ", "…", "()"):
        assert _found(pages, query) == set()
        assert _found(pages, query, "match_phrase") == set()
