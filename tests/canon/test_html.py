import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.canon import html as markup
from shinglefold.canon import strip_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("сло<b>во</b>", "слово"),
        ("<p>раз</p><p>два</p>", "раз\nдва"),
        ("<td>раз<td>два", "раз\nдва"),
        ("раз\n<td>два<p\u2003>три", "раз\nдва\nтри"),
        ("раз<pre>\n<p>два<listing>\n<p>три<textarea>\n<p>", "раз\nдва\nтри\n<p>"),
        ("раз<br>два<hr/>три", "раз\nдва\nтри"),
        ("<ul><li>раз<li>два</ul>", "раз\nдва"),
        ("<script>раз</script><style>два</style><template>три</template>четыре", "четыре"),
        (
            "<p hidden>раз</p><p style='display: none'>два</p><p style='color:red;DISPLAY:none'>3</p>видно",
            "видно",
        ),
        ("<head><title>заголовок</title></head><body>текст", "текст"),
        ("Tom &amp; Jerry&nbsp;&#8212; &laquo;мышь&raquo;", "Tom & Jerry — «мышь»"),
        ("<!-- раз -->два", "два"),
        ('<a title="<p>раз">два</a>', "два"),
        ("много   пробелов\n\n\n  и строк", "много пробелов\nи строк"),
        ("<p>незакрыто <b>и <i>криво</p></b>", "незакрыто и криво"),
        ("без разметки < и > &", "без разметки < и > &"),
        ("", ""),
        ("\ud800раз\x00два", "раздва"),
    ],
)
def test_what_a_reader_sees(html, text):
    assert strip_html(html) == text


@given(st.text(st.characters(codec=None), max_size=200))
@settings(max_examples=examples(200), deadline=None)
def test_it_never_raises(html):
    assert isinstance(strip_html(html), str)


@given(
    st.lists(
        st.sampled_from(
            ["<p", "<b>", "</p>", "<script>", "-->", "<!--", "<svg>", "&#", "x", "'", '"', "<table>"]
        )
    )
)
@settings(max_examples=examples(200), deadline=None)
def test_it_never_raises_on_broken_markup(parts):
    assert isinstance(strip_html("".join(parts)), str)


def test_deep_nesting_is_read():
    assert strip_html("<div>" * 20_000 + "дно" + "</div>" * 20_000) == "дно"


def test_what_scripts_show_is_kept_on_lines_of_its_own_where_asked_for():
    page = (
        "<h1>Вид <span hidden>для Windows</span><span hidden='true'>для Linux</span></h1><p hidden>и так</p>"
    )
    assert strip_html(page) == "Вид"
    assert strip_html(page, keep_hidden=True) == "Вид\nдля Windows\nдля Linux\nи так"
    assert (
        strip_html("<p style='display:none'>нет</p><p hidden aria-hidden=true>нет</p>", keep_hidden=True)
        == ""
    )


@given(
    st.text(st.characters(exclude_characters="<&") | st.sampled_from("\r\n\t\x0c \x85\xa0\u2028\ufeff\uffff"))
)
def test_a_text_without_markup_is_read_as_the_parser_reads_it(text):
    # A comment says nothing, and is markup.
    assert strip_html(text) == strip_html(text + "<!---->")


def test_a_text_without_markup_needs_no_parser(monkeypatch):
    monkeypatch.setattr(markup, "_parse", None)
    assert strip_html(" Заголовок \r\n\r\n первая  строка") == "Заголовок\nпервая строка"


@given(st.text("аб \t\n\r\u00a0\u2028\x1c", max_size=120), st.integers(1, 30))
@settings(max_examples=examples(400), deadline=None)
def test_a_long_text_is_put_together_as_a_short_one(text, at_once):
    expected = strip_html(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markup, "_AT_ONCE", at_once)
        assert strip_html(text) == expected
