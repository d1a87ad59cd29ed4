"""Pages by chance: an article in a frame, hidden or not; nested and huge; real and declared charsets."""

import random
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

#: Words by language, encodings that write them, and labels under which browsers read each.
_WORDS: Mapping[str, str] = {
    "ru": "мост через реку закрыт на ремонт автобусы идут в объезд по улице до осени съезд город вода",
    "uk": "міст через річку закрито на ремонт автобуси їдуть в об'їзд вулицею до осені ґанок місто вода",
    "zh": "地铁 三号线 周末 延长 运营 时间 乘客 可以 在 车站 换乘 公共 汽车 前往 城市 中心",
    "ja": "地下鉄 は 週末 に 運転 時間 を 延長 します 駅 で バス に 乗り換える ことが できます",
    "ko": "지하철 삼호선 주말 운행 시간 연장 승객 역 에서 버스 로 갈아탈 수 있다 도시 중심",
    "en": "the bridge over the river is closed for repairs buses take another street until autumn",
}
_CHARSETS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "ru": {
        "cp1251": ("windows-1251", "cp1251", "x-cp1251"),
        "koi8_r": ("koi8-r", "koi"),
        "cp866": ("ibm866",),
        "iso8859_5": ("iso-8859-5",),
        "mac_cyrillic": ("x-mac-cyrillic",),
    },
    "uk": {"cp1251": ("windows-1251",), "koi8_u": ("koi8-u",)},
    "zh": {"gb2312": ("gb2312", "gbk", "gb18030", "x-gbk"), "gb18030": ("gb18030", "chinese")},
    "ja": {
        "shift_jis": ("shift_jis", "sjis", "x-sjis"),
        "euc_jp": ("euc-jp",),
        "iso2022_jp": ("iso-2022-jp",),
    },
    "ko": {"euc_kr": ("euc-kr", "ks_c_5601-1987", "korean")},
    "en": {"ascii": ("us-ascii", "iso-8859-1", "latin1"), "cp1252": ("windows-1252",)},
}
#: How encodings are declared.
_DECLARATIONS = (
    '<meta charset="{0}">',
    "<META CHARSET={0}>",
    '<meta http-equiv="Content-Type" content="text/html; charset={0}">',
    '<!-- <meta charset="utf-8"> --><meta charset="{0}">',
    '<script>var metas = ["koi8-r"];</script><link rel=icon href=x>'
    + 40 * "<meta name=a content=b>"
    + "<meta charset={0}>",
)
#: Attributes that hide from readers of text, and those that do not.
_HIDES = (
    "hidden",
    "hidden=''",
    "hidden=until-found",
    "style=display:none",
    "style='color:red; DISPLAY : none!important'",
)
_SHOWS = (
    "",
    "aria-hidden=true",
    "style='visibility: hidden; opacity: 0'",
    "inert",
    "class=hidden",
    "data-hidden=1",
)
_BLOCKS = ("div", "section", "article", "main", "blockquote", "center", "app-page")
_DIALOGS = ("<dialog>{0}</dialog>", "<div role=dialog {1}>{0}</div>", "<div aria-modal=true {1}>{0}</div>")
_INLINE = ("b", "i", "font", "em", "a", "span", "code", "nobr", "big")
#: How often markup is repeated in the hugest page.
_HUGE = 20_000


class Page(NamedTuple):
    """A page as bytes; ``paragraphs``: what its text must have; ``hidden``: what it must not."""

    raw: bytes
    paragraphs: tuple[str, ...]
    hidden: str


def page(chance: random.Random) -> Page:
    """Return a page of which a browser shows the article, at the latest by a script."""
    language = chance.choice(list(_WORDS))
    words = _WORDS[language].split()
    paragraphs = tuple(_sentence(words, chance) for _ in range(chance.randint(3, 12)))
    # The dialog is longer than the article in some pages.
    request = "Consent " + _sentence(words, chance, 200 if chance.random() < 0.2 else 8)
    article = _wrapped("".join(map(_paragraph(chance), paragraphs)), chance)
    dialog = chance.choice(_DIALOGS).format(request, chance.choice(_HIDES))
    menu = "".join(f"<li><a href=/{number}>{word}</a>" for number, word in enumerate(words))
    parts = [
        f"<nav><ul>{menu}</ul></nav>",
        dialog,
        _huge(chance),
        f"<footer {chance.choice(_SHOWS)}>©</footer>",
    ]
    at = chance.randrange(len(parts))
    body = "".join([*parts[:at], article, *parts[at:]])
    root, own = (chance.choice(("", *_HIDES)) if chance.random() < 0.2 else "" for _ in range(2))
    raw, head = _encoded(language, chance)
    markup = f"{head}<title>x</title></head><body {own}>{body}</body></html>".replace(
        "<html", f"<html {root}"
    )
    return Page(markup.encode(raw, "xmlcharrefreplace"), paragraphs, request)


def _sentence(words: Sequence[str], chance: random.Random, most: int = 60) -> str:
    number = chance.randrange(10**6)
    return f"{' '.join(chance.choices(words, k=chance.randint(most // 2, most)))} {number}."


def _paragraph(chance: random.Random) -> Callable[[str], str]:
    def made(text: str) -> str:
        tag = chance.choice(("p", "li", "div", "h2", "td", "dd"))
        cut = text.index(" ", len(text) // 2)
        inline = chance.choice(_INLINE)
        # Many pages close no tag, or in a wrong order.
        end = chance.choice((f"</{inline}></{tag}>", f"</{tag}></{inline}>", f"</{inline}>"))
        return f"<{tag}>{escape(text[:cut])}<{inline}>{escape(text[cut:])}{end}"

    return made


def _wrapped(article: str, chance: random.Random) -> str:
    """Put an article into hidden and shown elements, one into another."""
    for _ in range(chance.randint(0, 4)):
        tag = chance.choice(_BLOCKS)
        article = f"<{tag} {chance.choice((*_HIDES, *_SHOWS))}>{article}</{tag}>"
    if chance.random() < 0.1:
        article = f"<div><template shadowrootmode=open>{article}</template></div>"
    return article


def _huge(chance: random.Random) -> str:
    """Return markup without text: mostly none, else nested, unclosed or merely long."""
    if chance.random() < 0.98:
        return ""
    tag = chance.choice((*_BLOCKS, *_INLINE, "ul", "li", "table", "select", "option", "button", "form", "dl"))
    count = int(_HUGE * chance.random() ** 3)
    attribute = chance.choice((*_HIDES, *_SHOWS))
    closed = chance.choice((f"<{tag} {attribute}></{tag}>" * count, f"<{tag}>" * count + f"</{tag}>" * count))
    return chance.choice(
        (
            closed,
            f"<img alt='{'x' * count}'>",
            f"<!--{'<p>' * count}-->",
            f"<script>{'a<b;' * count}</script>",
        )
    )


def _encoded(language: str, chance: random.Random) -> tuple[str, str]:
    """Return an encoding, and the head of a page that declares it, or another where it is UTF-8."""
    start = "<!DOCTYPE html><html lang=x><head>"
    codec, labels = chance.choice(list(_CHARSETS[language].items()))
    declared = chance.choice(_DECLARATIONS).format(chance.choice(labels))
    kind = chance.random()
    if kind < 0.5:
        return codec, start + declared
    if kind < 0.6:
        return codec, f"<?xml version='1.0' encoding='{chance.choice(labels)}'?>{start}"
    wide = ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig")
    if kind < 0.7:
        return chance.choice(wide), start + chance.choice(("", declared))
    return "utf-8", start + chance.choice(("", declared, "<meta charset=nonsense>", "<meta charset=utf8>"))
