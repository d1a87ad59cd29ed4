"""main_content keeps the article of a page and removes its boilerplate."""

import pytest

MENU = "".join(
    f'<li><a href="/{name}">{name}</a></li>' for name in ("Новости", "Спорт", "Погода", "Контакты")
)
ARTICLE = """
<h1>Мост через Каменку закроют на ремонт</h1>
<p>С понедельника мост через реку Каменку закроют на ремонт, движение пустят в объезд через старый город.</p>
<p>Работы продлятся до конца лета, говорят в мэрии; пешеходы смогут пройти по временному мостику рядом.</p>
"""


def page(article: str, name: str) -> str:
    return f"""<!DOCTYPE html><html><head><title>{name}</title></head><body>
    <header><div class="logo">{name}</div><nav><ul>{MENU}</ul></nav></header>
    <main><article>{article}</article></main>
    <aside class="sidebar"><h3>Читайте также</h3><ul>{MENU * 3}</ul></aside>
    <footer>© 2026 {name}. Все права защищены. Перепечатка без разрешения редакции запрещена.</footer>
    </body></html>"""


@pytest.fixture
def run_main_content(run_one):
    def run(html, **options):
        return run_one({"body": html}, {"main_content": {"field": "body", **options}})

    return run


def test_menu_header_and_footer_go_and_the_article_stays(run_main_content):
    text = run_main_content(page(ARTICLE, "Городская газета")).document["body"]
    assert "движение пустят в объезд" in text
    assert "временному мостику" in text
    for around in ("Погода", "Читайте также", "Все права защищены"):
        assert around not in text


def test_a_copy_on_another_site_has_the_same_fingerprint(run_one):
    steps = ({"main_content": {"field": "body"}}, {"supershingle": {"field": "body"}})
    prints = [run_one({"body": page(ARTICLE, name)}, *steps).document["_dedup"] for name in ("А", "Газета Б")]
    assert prints[0]["digest"] == prints[1]["digest"]


def test_a_page_without_an_article_keeps_its_text_and_is_counted(make_pipeline):
    pipeline = make_pipeline({"main_content": {"field": "body"}})
    (outcome,) = pipeline.run([{"body": f"<nav><ul>{MENU}</ul></nav>"}])
    assert "Погода" in outcome.document["body"]
    assert pipeline.meter.counts["no_main_content"] == 1


@pytest.mark.parametrize(
    "html", ["", "<", "\0", "\ud800<p>да", "plain text", "<div>" * 3000, "<!--", "<p>a</b></i><table><td>"]
)
def test_no_text_is_a_failure(run_main_content, html):
    assert run_main_content(html).status == "done"


def test_a_field_that_is_missing_or_no_text_is_reported(run_one):
    assert run_one({}, {"main_content": {"field": "body"}}).status == "failed"
    assert run_one({}, {"main_content": {"field": "body", "ignore_missing": True}}).status == "done"
    assert "is a number" in run_one({"body": 5}, {"main_content": {"field": "body"}}).failure.reason


ITEMS = ["три яйца", "стакан сахара", "щепотка соли", "корица по вкусу"]
FOOT = "<footer>© 2026 Все права защищены.</footer>"


@pytest.mark.parametrize("around", ["article", "main", "div"])
@pytest.mark.parametrize("kind", ["ul", "ol", "dl", "table", "UL class=x"])
def test_the_lists_of_an_article_stay_and_menus_go(run_main_content, around, kind):
    tags = {"dl": ("dd", "dl"), "table": ("tr><td", "table")}.get(kind, ("li", kind[:2]))
    items = "".join(f"<{tags[0]}>{item}" for item in ITEMS)
    menu = f"<div><ul>{MENU}</ul></div>"
    article = f"<{around}>{ARTICLE}<{kind}>{items}</{tags[1]}></{around}>"
    text = run_main_content(f"<html><body>{menu}{article}{FOOT}").document["body"]
    assert all(item in text for item in ITEMS)
    assert "Погода" not in text


@pytest.mark.parametrize("where", ["<main>{}</main>", "<article>{}</article>", "<div role=main>{}</div>"])
@pytest.mark.parametrize("hidden", ["", " style=display:none", " hidden"])
def test_an_article_shorter_than_what_stands_around_it_is_found_where_the_page_says_so(
    run_main_content, where, hidden
):
    consent = (
        f"<div{hidden}>"
        + "<p>Мы и наши партнёры храним сведения об устройстве, чтобы показывать рекламу.</p>" * 9
    )
    article = where.format("<h1>Мост закрыт</h1><p>С девяти до шести.</p>")
    text = run_main_content(f"<html><body>{article}{consent}</div>{FOOT}").document["body"]
    assert text.split() == ["Мост", "закрыт", "С", "девяти", "до", "шести."]


#: What is said of the element that has the article: scripts show it, or its name says nothing.
HIDDEN = [
    "style='visibility: hidden; opacity: 0'",
    "style='display:none'",
    "hidden",
    "aria-hidden=true",
    "role=dialog",
    "class='rich_media invisible'",
    "class=hidden",
    "class=modal",
    "id=sidebar",
]


@pytest.mark.parametrize("said", HIDDEN)
@pytest.mark.parametrize(
    "around",
    [
        "<div class=page><h1>Газета</h1><div {}>{}</div></div>",
        "<main><div {}>{}</div></main>",
        "<article {}>{}</article>",
        "<body {}><div><div>{}</div></div>",
    ],
)
def test_an_article_that_a_script_shows_is_not_lost(run_main_content, said, around):
    article = "".join(f"<p>{line}</p>" for line in ARTICLE.splitlines()[2:])
    text = run_main_content(f"<html>{around.format(said, article)}{FOOT}").document["body"]
    assert "движение пустят в объезд" in text
    assert "временному мостику" in text


def test_a_dialog_beside_the_article_goes(run_main_content):
    asks = "<p>Мы используем файлы cookie, чтобы сайт работал.</p><button>Принять</button>"
    for said in ("class='modal hidden'", "role=dialog style=display:none", "hidden class=popup"):
        page_ = f"<body><div class=page>{ARTICLE}</div><div {said}>{asks}</div>{FOOT}"
        text = run_main_content(page_).document["body"]
        assert "движение пустят в объезд" in text
        assert "cookie" not in text


def test_an_article_that_a_script_shows_in_place_of_a_notice_is_not_lost(run_main_content):
    shown = f"<main><p>Загрузка…</p></main><div hidden id=S:0><article>{ARTICLE}</article></div>"
    assert "движение пустят в объезд" in run_main_content(f"<body>{shown}{FOOT}").document["body"]


def test_folded_answers_and_their_questions_stay(run_main_content):
    parts = "".join(
        f"<h3><button aria-expanded=false>{number}. Когда откроют мост?</button></h3>"
        f"<div hidden><p>{number}. Его откроют, когда закончат ремонт.</p></div>"
        for number in range(4)
    )
    text = run_main_content(f"<body><main>{ARTICLE}{parts}</main>{FOOT}").document["body"]
    for number in range(4):
        assert f"{number}. Когда откроют мост?" in text
        assert f"{number}. Его откроют" in text


def test_words_with_a_reading_above_the_line_stay(run_main_content):
    word = "<ruby><rb>春</rb><rp>(</rp><rt>chūn</rt><rp>)</rp></ruby>天"
    text = run_main_content(f"<body><article><h1>季节</h1><p>{word * 30}</p></article>").document["body"]
    assert "春天" * 30 in text


@pytest.mark.parametrize("beside", ["aside", "footer", "nav"])
def test_a_short_notice_is_not_lost_for_a_teaser(run_main_content, beside):
    notice = "<main><h1>Объявление</h1><p>Мост закрыт до пяти часов утра понедельника.</p></main>"
    text = run_main_content(f"<body>{notice}<{beside}><article>{ARTICLE}</article></{beside}>").document[
        "body"
    ]
    assert "до пяти часов утра" in text
    assert "движение пустят" not in text


@pytest.mark.parametrize(
    "part",
    [
        "<figure class=table><table><tr><td>Длина<td>{}</table></figure>",
        "<figure><pre><code>{}</code></pre></figure>",
        "<figure><blockquote>{}</blockquote></figure>",
        "<figure><img src=a.jpg><figcaption>На снимке: {}</figcaption></figure>",
        "<p>Открытие <time datetime=2026-05-05>{}</time> в полдень.</p>",
        "<ul><li>Начало: <time>{}</time></ul>",
    ],
)
def test_figures_and_dates_of_an_article_stay(run_main_content, part):
    """resiliparse drops these elements."""
    page = f"<body><nav><ul>{MENU}</ul></nav><article>{ARTICLE}{part.format('пятое мая')}<p>Конец.</article>"
    assert "пятое мая" in run_main_content(page).document["body"]


@pytest.mark.parametrize("style", ["visibility: hidden; opacity: 0; ", "opacity:0;VISIBILITY:hidden"])
@pytest.mark.parametrize("tag", ["div", "section"])
def test_what_a_script_makes_visible_is_the_article(run_main_content, style, tag):
    foot = "".join(f"<div>{word}</div>" for word in ["Подпишитесь", "Поделиться", "Ещё"])
    html = f"<body><div><{tag} style='{style}'>{ARTICLE}</{tag}><div>{foot}</div></div></body>"
    text = run_main_content(html).document["body"]
    assert "временному мостику" in text
    assert "Поделиться" not in text


def test_a_dialog_that_a_script_makes_visible_is_no_article(run_main_content):
    dialog = f"<div style='visibility:hidden'>{'Сайт использует файлы cookie. ' * 6}</div>"
    text = run_main_content(f"<body>{dialog}{ARTICLE * 2}</body>").document["body"]
    assert "временному мостику" in text


def test_an_article_for_browsers_without_scripts_is_read(run_main_content):
    html = f"<body><nav><ul>{MENU}</ul></nav><div id=root></div><noscript>{ARTICLE}</noscript></body>"
    assert "временному мостику" in run_main_content(html).document["body"]


@pytest.mark.parametrize("names", ["", " role=main", " role='main' itemprop='articleBody'"])
def test_an_article_named_in_two_ways_is_one_article(run_main_content, names):
    frame = "<p>Городская газета выходит с девяностого года каждый день, кроме понедельника и праздников.</p>"
    html = f"<body><header>{frame}</header><main{names}>{ARTICLE}</main><div>{frame}</div></body>"
    assert "Городская газета" not in run_main_content(html).document["body"]


@pytest.mark.parametrize("beside", ["aside", "footer", "nav"])
def test_a_teaser_beside_the_text_is_not_the_article_of_the_page(run_main_content, beside):
    """All pages of a site that have the same one would be copies."""
    words = "Читайте в субботу наш новый большой рассказ о жизни города. " * 3
    teaser = f"<{beside}><article><p>{words}</article></{beside}>"
    html = f"<body><nav><ul>{MENU}</ul></nav>{teaser}<div class=content>{ARTICLE * 2}</div></body>"
    assert "временному мостику" in run_main_content(html).document["body"]
