"""Texts in fields that are not read, unstated markup, and recipes that are gone: told, never guessed."""

import json
import shlex
from pathlib import Path

import pytest
from support.commands import json_lines
from support.hints import hints, opened, run_hints
from support.maintenance import pages, store

from shinglefold.ingest import default_definition
from shinglefold.ingest.field_statistics import text_coverage

_TEXT = {"type": "text"}
#: Names of the text in documents, and the fields that the remedy takes it from.
_ELSEWHERE = ["text", "content", "html", "article.text", "story"]


def _documents(body: str, count: int = 8, prefix: str = "page") -> list[dict]:
    """Different articles under one rubric title, with their text in a field of this name."""
    found = []
    for number, page in enumerate(pages(count, seed=3)):
        text = f"<p>{page['body']}</p>" if body == "html" else page["body"]
        first, _, rest = body.partition(".")
        own = {"id": f"{prefix}-{number}", "title": "Новости города за неделю, главное и коротко"}
        found.append({**own, first: {rest: text} if rest else text})
    return found


def _lines(documents) -> str:
    return json_lines(*documents)


def _properties(body: str) -> dict:
    first, _, rest = body.partition(".")
    return {"title": _TEXT, first: {"properties": {rest: _TEXT}} if rest else _TEXT}


@pytest.fixture
def theirs(request):
    """An index of another program, whose documents have no fingerprints."""
    with opened() as engine:
        engine.create_index("theirs", {"properties": _properties(request.param)}, {})
        store(engine, "theirs", _documents(request.param))
    return request.param


@pytest.mark.long(every=5)
@pytest.mark.parametrize("theirs", _ELSEWHERE, indirect=True)
def test_setup_asks_for_the_field_that_carries_most_of_the_text(run, theirs):
    asked = run("setup", "theirs").check(2, f"most of the text is in {theirs}, and only titles are read")
    assert hints(asked.err)[0] == ["setup", "theirs", "--field", "title", "--field", theirs]
    run_hints(run, asked.err)
    last = run("doctor", "theirs").out.splitlines()[-1]
    again = run("setup", "theirs").err
    if theirs == "html":
        assert "hold HTML in html" in last
        assert "hold HTML in html" in again
    else:
        assert (last, again) == ("all is well", "")


@pytest.mark.long(every=2)
@pytest.mark.parametrize("theirs", ["text", "article.text"], indirect=True)
def test_every_command_that_writes_tells_of_text_that_is_not_read(run, theirs):
    named = ("--field", "title", "--field", "body")
    told = f"most of the text is in {theirs}"
    assert told in run("setup", "theirs", *named, "--groups").err
    run("backfill", "theirs").check(3, told)
    for number, command in enumerate(("index -", "add - --policy tag")):
        run(
            *command.split(), "--index", "theirs", stdin=_lines(_documents(theirs, 2, f"new-{number}"))
        ).check(3, told)
    assert told in run("regroup", "theirs").err
    ill = run("doctor", "theirs").check(3)
    assert "12 have a fingerprint of titles alone" in ill.out
    assert f"there is text in {theirs}" in ill.out
    run_hints(run, ill.out)
    run("regroup", "theirs")
    well = run("doctor", "theirs")
    assert (well.code, "titles alone" in well.out) == (0, False)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (("title", "body"), "maps no field body, and text is not read"),
        (("title", "text.plain"), "text.plain is not a field of the documents: they have its text in text"),
    ],
)
def test_mappings_tell_of_fields_that_no_document_will_have(run, fields, told):
    with opened() as engine:
        text = {**_TEXT, "fields": {"plain": _TEXT}}
        engine.create_index("empty", {"dynamic": "strict", "properties": {"title": _TEXT, "text": text}}, {})
    named = [word for field in fields for word in ("--field", field)]
    assert told in run("setup", "empty", *named).err


def test_fields_that_hold_a_small_part_or_a_copy_of_the_text_are_no_news(run):
    some = [
        {
            **page,
            "teaser": " ".join(page["body"].split()[:9]),
            "body_html": f"<p>{page['body']}</p><hr><p></p>",
        }
        for page in pages(8)
    ]
    assert run("index", "-", stdin=_lines(some)).err == ""
    assert run("backfill", "pages").err == ""


def _lose_recipe(index: str) -> dict:
    """Replace ``_meta`` as another program does; return the recipe that was there."""
    with opened() as engine:
        noted = engine.mappings(index)["_meta"]["shinglefold"]
        engine.put_mappings(index, {"_meta": {"owner": "somebody else"}})
        assert "shinglefold" not in engine.mappings(index)["_meta"]
    return noted


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ((), {}),
        (("--field", "content"), {"body": "content"}),
        (("--field", "headline", "--field", "story"), {"title": "headline", "body": "story"}),
        (("--preset", "classic", "--field", "text", "--field", "title"), {"body": "text"}),
    ],
)
def test_a_recipe_that_is_gone_is_restored_from_the_fingerprints(run, flags, names):
    documents = [{names.get(key, key): value for key, value in page.items()} for page in pages(20)]
    assert run("index", "-", *flags, stdin=_lines(documents)).code == 0
    noted = _lose_recipe("pages")
    for command in ("search Страница", "backfill pages", "doctor pages", "index - --index pages"):
        lost = run(*command.split(), stdin=_lines(documents))
        assert (lost.code, hints(lost.err)) == (2, [["setup", "pages"]]), lost
    restored = run("setup", "pages").check(0)
    assert "20 of 20 documents looked at show" in restored.err or "18 of 18" in restored.err, restored.err
    with opened() as engine:
        assert engine.mappings("pages")["_meta"] == {"owner": "somebody else", "shinglefold": noted}
    assert "0 updated, 20 right already" in run("backfill", "pages").out


def test_a_recipe_that_no_field_explains_is_not_guessed(run):
    assert run("index", "-", stdin=_lines(pages(20))).code == 0
    _lose_recipe("pages")
    with opened() as engine:
        other = pages(20, seed=9)
        engine.bulk(
            {"_op_type": "update", "_index": "pages", "_id": one["id"], "doc": {"body": one["body"]}}
            for one in other
        )
    run("setup", "pages").check(2, "no default pipeline of title, body")
    assert run("setup", "pages", "--field", "title", "--field", "body").code == 0


def test_a_backfill_that_makes_fingerprints_poorer_stops_unless_it_may(run):
    assert run("index", "-", stdin=_lines(pages(20))).code == 0
    assert run("setup", "pages", "--field", "title").code == 0
    with opened() as engine:
        before = engine.search("pages", {"query": {"match_all": {}}, "size": 20})["hits"]["hits"]
    stopped = run("backfill", "pages").check(
        1, "18 of 20 fingerprints would be replaced by ones of far less text"
    )
    with opened() as engine:
        assert engine.search("pages", {"query": {"match_all": {}}, "size": 20})["hits"]["hits"] == before
    (anyway,) = [one for one in hints(stopped.err.replace("; ", "\n")) if one[0] == "backfill"]
    assert anyway == ["backfill", "pages", "--allow-poorer"]
    assert "20 updated" in run(*anyway).out


def test_the_step_that_joins_lists_also_reads_what_is_stored(run):
    """Documents are stored with the joined text: doctor and backfill read that again."""
    line = json.dumps({"id": "1", "title": ["News of", "the day"], "body": pages(1)[0]["body"]})
    refused = run("index", "-", "--engine", "kept", stdin=line)
    step = json.loads(refused.out.partition("put ")[2].partition(" first in the pipeline")[0])
    steps = [step, *default_definition("_dedup")["processors"]]
    Path("pipeline.json").write_text(json.dumps({"processors": steps}))
    run("index", "-", "--engine", "new", "--pipeline", "pipeline.json", stdin=line).check(0)
    examined = run("doctor", "pages", "--engine", "new")
    assert (examined.code, examined.out.splitlines()[-1]) == (0, "all is well")
    assert run("backfill", "pages", "--engine", "new").out.startswith("0 updated, 1 right already")


def test_doctor_names_the_command_that_tells_why_a_pipeline_fails(run):
    steps = [{"trim": {"field": "kind"}}, *default_definition("_dedup")["processors"]]
    Path("pipeline.json").write_text(json.dumps({"processors": steps}))
    line = json.dumps({"id": "1", "kind": 5, "body": pages(1)[0]["body"]})
    assert run("index", "-", stdin=line).code == 0
    assert run("setup", "pages", "--pipeline", "pipeline.json").code == 0
    examined = run("doctor", "pages").check(3)
    *_, command = examined.out.splitlines()[-1].partition("this says why it fails: shinglefold ")
    assert "trim: field [kind] is a number" in run(*command.split()).out


def test_goods_in_short_chinese_clauses_are_text(run):
    goods = [
        {
            "id": f"a-{number}",
            "name": f"苹果手机 {number}GB 黑色",
            "desc": "全新正品,支持快充,屏幕清晰;防水防尘。",
        }
        for number in (64, 128, 256)
    ]
    made = run("index", "-", "--index", "goods", stdin=_lines(goods))
    assert "there is text in name, desc" in made.err
    run_hints(run, made.err)
    assert run("doctor", "goods").code == 0


def test_an_index_in_which_nothing_can_fold_is_not_well(run):
    questions = [
        {"id": f"q-{n}", "question": f"How do I reset it {n} times?", "host": "a.example"} for n in "ab"
    ]
    made = run("index", "-", "--index", "faq", stdin=_lines(questions))
    assert "they have question, " in made.err
    ill = run("doctor", "faq").check(3)
    assert "none has text in the fields the pipeline reads" in ill.out
    assert "of other texts" not in ill.out
    for told in (made.err, ill.out):
        assert hints(told)[0][:4] == ["setup", "faq", "--field", "FIELD"]
    assert run("setup", "faq", "--field", "question").code == 0
    assert run("backfill", "faq").code == 0
    assert run("doctor", "faq").out.endswith("all is well\n")


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
