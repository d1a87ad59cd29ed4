"""HTML in fields of documents that do not say so: every command tells it, and the command that helps."""

import json
import shlex

import pytest

from shinglefold.ingest.field_statistics import text_coverage

_CELL = '<p class="MsoNormal" style="line-height:115%;color:black"><span lang="RU">{}<o:p></o:p></span></p>'
_PRODUCTS = {
    "чайник": ("Чайник из нержавеющей стали", "Свисток слышен в комнате", "Гарантия один год"),
    "плед": ("Плед шерстяной в клетку", "Ткань не колется и греет", "Стирать в прохладной воде"),
    "лампа": ("Настольная лампа с зажимом", "Свет тёплый и ровный", "Шнур два метра"),
    "нож": ("Нож складной туристический", "Лезвие закалено", "В комплекте кожаный чехол"),
}


@pytest.fixture
def products(tmp_path):
    """Product texts as a word processor exports them, without a format."""
    bodies = {name: "".join(map(_CELL.format, lines)) for name, lines in _PRODUCTS.items()}
    written = [json.dumps({"id": name, "title": name, "body": body}) for name, body in bodies.items()]
    (tmp_path / "products.jsonl").write_text("\n".join(written))


#: By name: the command, and whether those before it are to be run first.
_COMMANDS = {
    "groups": ("groups products.jsonl",),
    "report": ("report products.jsonl",),
    "advise": ("advise sample products.jsonl",),
    "sign": ("sign products.jsonl -o signed.jsonl",),
    "index": ("index products.jsonl --index shop --groups",),
    "add": ("setup shop --groups", "add products.jsonl --index shop"),
}
_INDEXED = "index products.jsonl --index shop"


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("name", _COMMANDS)
def test_the_command_that_is_told_takes_the_markup_off(run, name):
    *before, command = _COMMANDS[name]
    for one in before:
        assert run(*shlex.split(one)).code == 0
    told = run(*shlex.split(command))
    assert "4 documents hold HTML in body" in told.err
    again = run(*shlex.split(_remedy(told.err)))
    assert again.code in (0, 3)
    assert "HTML" not in again.err
    if name == "groups":
        assert (again.out, told.out.split()) == ("", list(_PRODUCTS))
    if name == "index":
        stored = run("search", "--index", "shop", "чехол", "--json").json()["hits"]["hits"]
        assert stored[0]["_source"]["format"] == "html"
        assert "all is well" in run("doctor", "shop").out


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("command", ["setup shop", "backfill shop", "doctor shop"])
def test_stored_documents_are_looked_at(run, command):
    run(*shlex.split(_INDEXED))
    told = run(*shlex.split(command))
    assert "4 documents hold HTML in body" in told.out + told.err
    assert "all is well" not in told.out
    remedy = _remedy(told.out + told.err).replace("FILE", "products.jsonl")
    assert "HTML" not in run(*shlex.split(remedy)).err
    assert "HTML" not in run(*shlex.split(command)).err


@pytest.mark.parametrize(
    ("body", "markup"),
    [
        ("<p>Мост закрыт", True),
        ("Мост закрыт<br>до мая, <b>объезд</b> по набережной", True),
        ("Мост закрыт до мая.</div>", True),
        ("Театр &laquo;Маяк&raquo; открыт&nbsp;снова", True),
        ("Ссылка <a href=x>далее</a>", True),
        ("Диагональ 55&quot; и пульт", True),
        ("Кофе &amp;amp; чай", True),
        ("Вес 5&#160;кг", True),
        ("Мост закрыт.<br />Объезд по набережной.", True),
        ("<![CDATA[Мост закрыт]]>", True),
        ("<script>go()</script> Мост закрыт", True),
        ("http://example.org/?a=1&copy=2&lt=3", False),
        ("Use the <br> tag to break lines", False),
        ("a < b and c > d, if x<y then y>x", False),
        ("Write <b> for bold text, or use <i> instead of it.", False),
        ("Johnson & Johnson; AT&T; R&D", False),
        ("List<String> names; Map<K, V> values; <T> T get()", False),
        ("Иванов <ivanov@example.org> пишет", False),
    ],
)
def test_markup_is_told_from_texts_that_have_its_signs(body, markup):
    assert ("body" in text_coverage([{"body": body}], ["body"]).markup) is markup
    assert not text_coverage([{"body": body, "format": "html"}], ["body"]).markup
    assert not text_coverage([{"body": body}], ["body"], stripped=["body"]).markup


def test_a_reference_in_a_title_is_not_told_as_no_option_takes_it_off():
    assert not text_coverage([{"title": "Телевизор 55&quot;", "body": "один"}], ["title", "body"]).markup


def _remedy(told):
    (line,) = [line for line in told.splitlines() if "HTML" in line]
    return line.rpartition("to take it off: shinglefold ")[2]
