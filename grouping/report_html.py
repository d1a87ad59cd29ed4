"""Render a report as one HTML file with SVG plots, which loads nothing from elsewhere."""

from collections.abc import Sequence
from html import escape
from math import ceil
from typing import NamedTuple

from shinglefold.errors import counted
from shinglefold.grouping.report import GroupReport, ListedGroup, ListedMember, Share
from shinglefold.model.linkage import linkage_phrase

_WIDTH, _ROW, _LABEL, _VALUE = 640, 26, 230, 160
_HEIGHT, _FOOT = 180, 44
#: The width of a character of a label and of an East Asian one, half the width of the longest label below a
#: column, and the distance of such labels.
_CHARACTER, _WIDE, _HALF, _SPACING = 10.0, 16.5, 32, 76
#: Months without documents are drawn, too, unless there are more months than this.
_SPAN = 360
_STYLE = """
:root{color-scheme:light dark;--ink:#1d2733;--soft:#5d6b7a;--paper:#fff;--line:#dde3ea;
--bar:#2f6fb2;--rest:#c9dbee}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf3;--soft:#9aa8b6;--paper:#14191f;--line:#2c3640;
--bar:#6aa9e9;--rest:#2b4866}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1360px;
margin:0 auto;padding:2rem 1.5rem}
h1{font-size:1.5rem;margin:0 0 1rem}h2{font-size:1.1rem;margin:0 0 .2rem}
p{color:var(--soft);margin:0 0 1rem}
dl{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;margin:0 0 2rem}dt{color:var(--soft);font-size:.9rem}
dd{margin:0;font-size:1.7rem;font-variant-numeric:tabular-nums}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:2.5rem}
section{min-width:0}svg{width:100%;height:auto;max-width:660px}
svg text{font:13px system-ui,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
@media(max-width:680px){svg text{font-size:16px}}
.bar{fill:var(--bar)}.rest{fill:var(--rest)}.axis{stroke:var(--line)}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th{color:var(--soft);font-weight:500;text-align:left}
th,td{border-bottom:1px solid var(--line);padding:.35rem .6rem .35rem 0;overflow-wrap:anywhere;
vertical-align:top}
td.number,th.number{text-align:right;white-space:nowrap;width:6rem;padding-right:1rem}
td.date{white-space:nowrap}small{color:var(--soft)}
summary small{white-space:nowrap}
.wide{grid-column:1/-1}a{color:var(--bar)}a:visited{color:var(--soft)}
.groups{display:grid;gap:.6rem}
details{border:1px solid var(--line);border-radius:8px;padding:.55rem .9rem}
summary{cursor:pointer;display:flex;gap:1rem;align-items:baseline}
summary b{font-variant-numeric:tabular-nums;min-width:6.5rem;font-weight:600}
summary span{min-width:0;overflow-wrap:anywhere;flex:1}
summary::after{content:"+";color:var(--soft);font-size:1.2rem;line-height:1}
details[open] summary::after{content:"–"}summary::-webkit-details-marker{display:none}
ol{margin:.6rem 0 .2rem;padding-left:1.6rem}
li{padding:.2rem 0;overflow-wrap:anywhere}li::marker{color:var(--soft)}
mark{background:var(--rest);color:inherit;border-radius:4px;padding:0 .4em;font-size:.8rem}
.note{max-width:46rem;color:var(--ink)}
@media(max-width:680px){body{padding:1.2rem 1rem}dl{gap:.8rem 1.6rem}dd{font-size:1.35rem}
summary{flex-wrap:wrap;gap:.1rem .8rem}summary span{flex-basis:100%;order:3}summary b{flex:1}}
@media print{details{break-inside:avoid}details::details-content{content-visibility:visible;height:auto}}
"""


class _Bar(NamedTuple):
    """A bar of which ``part`` of ``whole`` is dark, and the text after it."""

    label: str
    part: int
    whole: int
    text: str


def page(report: GroupReport) -> str:
    """Return the report as HTML; every text of documents is escaped."""
    last = max((at for at, one in enumerate(report.sizes) if one.groups), default=0)
    sizes = [
        _Bar(one.size, one.groups, one.groups, f"{one.groups:,}") for one in report.sizes[: max(5, last + 1)]
    ]
    shares = {
        kind: [
            _Bar(one.value, one.copies, one.documents, f"{one.share:.0%} of {one.documents:,}")
            for one in found
        ]
        for kind, found in (("hosts", report.hosts), ("languages", report.languages))
    }
    months = [
        _Bar(one.value, one.copies, one.documents, f"{one.copies:,} of {one.documents:,}")
        for one in _without_gaps(report.months)
    ]
    parts = [
        _section("Groups by size", "How many groups have how many documents.", _columns(sizes)),
        *(
            _section(f"Copies by {kind.removesuffix('s')}", _legend(report, kind), _rows(bars))
            for kind, bars in shares.items()
            if bars
        ),
    ]
    if months:
        parts.append(_section("Copies by month", _legend(report, "months"), _columns(months)))
    for title, groups in (("The largest groups", report.largest), ("The newest groups", report.newest)):
        if groups:
            legend = "A click shows the documents of a group; the first is its original."
            body = "".join(_group(group, is_open=not at) for at, group in enumerate(groups))
            parts.append(_section(title, legend, f'<div class="groups">{body}</div>', wide=True))
    name, made_at = escape(report.index), report.made_at.replace("T", " ").replace("+00:00", " UTC")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Copies in {name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>Copies in {name}</h1><p>As of {escape(made_at)}.</p>{_how_to_read(report)}{_figures(report)}"
        f"<main>{''.join(parts)}</main></html>\n"
    )


def _how_to_read(report: GroupReport) -> str:
    """Return what a group and a copy are, and what the figures say, in sentences."""
    sentences = [
        "Documents with nearly the same text form a <b>group</b>: reprints, mirrors, revisions. The one with "
        "which the others were matched counts as the <b>original</b>; every other one is a <b>copy</b>. A "
        "search that folds shows a group as one result."
    ]
    if report.copies:
        grouped = report.documents - report.without_group
        several = counted(report.shared, "text has", "texts have")
        sentences.append(
            f"Here {report.copies:,} of {grouped:,} documents are copies ({report.copies / grouped:.1%}), "
            f"and {several} more than one document: {report.in_shared:,} together."
        )
    if how := linkage_phrase(report.linkage):
        sentences.append(f"How groups are made ({escape(how)}).")
    if report.without_group:
        sentences.append(f"Without a group number, and not in the plots: {report.without_group:,}.")
    if report.placeholders:
        sentences.append(f"Reserved ids without a document are not counted: {report.placeholders:,}.")
    if unread := report.unread():
        sentences.append(f"Months and newest dates are incomplete: {escape(unread)}.")
    return f'<p class="note">{" ".join(sentences)}</p>'


def _legend(report: GroupReport, kind: str) -> str:
    left_out = report.left_out(kind)
    return f"Strong: copies; faint: other documents.{f' Not here: {left_out}.' if left_out else ''}"


def _figures(report: GroupReport) -> str:
    grouped = report.documents - report.without_group
    share = f" ({report.copies / grouped:.1%})" if grouped else ""
    figures = [
        ("documents", f"{report.documents:,}"),
        ("groups", f"{report.groups:,}"),
        ("with copies", f"{report.shared:,}"),
        ("copies", f"{report.copies:,}{share}"),
    ]
    if report.without_group:
        figures.append(("without a group", f"{report.without_group:,}"))
    if report.led_by_several:
        figures.append(("groups led by several", f"{report.led_by_several:,}"))
    return f"<dl>{''.join(f'<div><dt>{name}</dt><dd>{value}</dd></div>' for name, value in figures)}</dl>"


def _section(title: str, legend: str, body: str, *, wide: bool = False) -> str:
    kind = ' class="wide"' if wide else ""
    return f"<section{kind}><h2>{title}</h2><p>{legend}</p>{body}</section>"


def _rows(bars: Sequence[_Bar]) -> str:
    """Return horizontal bars."""
    most = max(bar.whole for bar in bars)
    left = min(_LABEL, 14 + max(_text_width(bar.label) for bar in bars))
    room = _WIDTH - left - _VALUE
    drawn = []
    for at, bar in enumerate(bars):
        top = at * _ROW
        whole, part = (max(1.0, room * value / most) if value else 0 for value in (bar.whole, bar.part))
        drawn.append(
            f"<g><title>{escape(bar.label)}: {escape(bar.text)}</title>"
            f'<text x="{left - 10:.0f}" y="{top + 17}" text-anchor="end">{_fit_label(bar.label)}</text>'
            f'<rect class="rest" x="{left:.0f}" y="{top + 4}" width="{whole:.1f}" '
            f'height="{_ROW - 8}" rx="2"/>'
            f'<rect class="bar" x="{left:.0f}" y="{top + 4}" width="{part:.1f}" height="{_ROW - 8}" rx="2"/>'
            f'<text class="soft" x="{left + whole + 8:.1f}" y="{top + 17}">{escape(bar.text)}</text></g>'
        )
    return _svg(drawn, len(bars) * _ROW)


def _columns(bars: Sequence[_Bar]) -> str:
    """Return vertical bars; labels that would overlap are left out."""
    most = max((bar.whole for bar in bars), default=0) or 1
    step = _WIDTH / max(1, len(bars))
    every = max(1, round(_SPACING / step + 0.49))
    first = max(0, ceil(_HALF / step - 0.5))
    few = len(bars) <= 12
    drawn = []
    for at, bar in enumerate(bars):
        left, middle = at * step + step * 0.12, at * step + step / 2
        whole, part = (max(1.0, _HEIGHT * value / most) if value else 0 for value in (bar.whole, bar.part))
        drawn.append(f"<g><title>{escape(bar.label)}: {escape(bar.text)}</title>")
        for kind, high in (("rest", whole), ("bar", part)):
            drawn.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{20 + _HEIGHT - high:.1f}" '
                f'width="{step * 0.76:.1f}" height="{high:.1f}" rx="2"/>'
            )
        if few:
            top = 14 + _HEIGHT - whole
            drawn.append(
                f'<text class="soft" x="{middle:.1f}" y="{top:.1f}" text-anchor="middle">{bar.whole:,}</text>'
            )
        if (at - first) % every == 0 and _HALF <= middle <= _WIDTH - _HALF:
            label = escape(_truncate(bar.label, 12))
            drawn.append(f'<text x="{middle:.1f}" y="{_HEIGHT + 40}" text-anchor="middle">{label}</text>')
        drawn.append("</g>")
    base = 20 + _HEIGHT
    drawn.append(f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{base}" y2="{base}"/>')
    return _svg(drawn, 20 + _HEIGHT + _FOOT)


def _svg(drawn: Sequence[str], height: int) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(drawn)}</svg>'


def _group(group: ListedGroup, *, is_open: bool) -> str:
    newest = f" <small>newest {escape(group.newest)}</small>" if group.newest else ""
    title = escape(group.title) if group.title else escape(_truncate(group.id, 60))
    members = "".join(_member(one, original=not at) for at, one in enumerate(group.members))
    more = group.documents - len(group.members)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return (
        f"<details{' open' if is_open else ''}><summary><b>{group.documents:,} documents</b>"
        f"<span>{title}{newest}</span></summary><ol>{members}</ol>{rest}</details>"
    )


def _member(member: ListedMember, *, original: bool) -> str:
    """Return a document with a link where it has an address; the id, too, because titles repeat."""
    name = escape(member.title or _truncate(member.id, 60))
    if member.url.startswith(("http://", "https://")):
        name = f'<a href="{escape(member.url)}" rel="noreferrer">{name}</a>'
    about = [member.host, member.date, _truncate(member.id, 60) if member.title else ""]
    badge = " <mark>original</mark>" if original else ""
    return f"<li>{name}{badge} <small>{escape(' · '.join(filter(None, about)))}</small></li>"


def _without_gaps(months: Sequence[Share]) -> list[Share]:
    """Return months, with those between them that have no document unless the span is too long."""
    if not months:
        return []
    places = [int(one.value[:4]) * 12 + int(one.value[5:]) - 1 for one in months]
    if places[-1] - places[0] > _SPAN:
        return list(months)
    there = dict(zip(places, months, strict=True))
    return [
        there.get(place, Share(f"{place // 12:04}-{place % 12 + 1:02}", 0, 0))
        for place in range(places[0], places[-1] + 1)
    ]


def _fit_label(text: str) -> str:
    """Return a label that fits; a long one loses its middle, because its ends differ most."""
    room, width = _LABEL - 14, _text_width(text)
    if width <= room:
        return escape(text)
    most = int(room / max(_CHARACTER, width / len(text))) - 1
    return escape(f"{text[: most - most // 2]}…{text[len(text) - most // 2 :]}")


def _text_width(text: str) -> float:
    return sum(_WIDE if ord(one) > 0x2E80 else _CHARACTER for one in text)


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
