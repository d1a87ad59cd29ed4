"""Pictures of measurements, as SVG: points in two colours, and growth by powers of ten."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 900, 360, 60, 44, 16
#: Points of the background, points that matter.
_COLOURS = ("#9aa5b1", "#d1495b")

Point = tuple[float, float]


def scatter(
    title: str,
    axes: tuple[str, str],
    groups: Sequence[tuple[str, Iterable[Point]]],
    right: float,
    top: float,
) -> str:
    """Return a picture of two groups of points, those of the second on top.

    Args:
        axes: what the horizontal and the vertical axis mean; the vertical one is a share, shown in per cent.
        groups: name and points of the background, then of what matters.
        right, top: where the axes end; they begin at 0.
    """
    parts = [*_begun(title), *_grid(axes, right, top)]
    for place, ((name, points), colour) in enumerate(zip(groups, _COLOURS, strict=True)):
        dots = "".join(f'<circle cx="{_x(x, right)}" cy="{_y(y, top)}" r="2.2"/>' for x, y in points)
        parts.append(f'<g fill="{colour}">{dots}</g>')
        at = _WIDTH - 330 + 160 * place
        parts.append(
            f'<circle cx="{at}" cy="15" r="4" fill="{colour}"/><text x="{at + 9}" y="20">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def keep(name: str, picture: str) -> Path:
    """Write a picture to the documentation and return its file."""
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.svg"
    path.write_text(picture, "utf-8")
    return path


def _x(value: float, right: float) -> float:
    return round(_LEFT + value / right * (_WIDTH - _LEFT - _EDGE), 1)


def _y(value: float, top: float) -> float:
    return round(_HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - 40), 1)


def _begun(title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="15">{title}</text>',
    ]


def _named(axes: tuple[str, str]) -> list[str]:
    middle, centre = (_WIDTH + _LEFT) / 2, _HEIGHT / 2
    turned = f'transform="rotate(-90 14 {centre})"'
    return [
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{axes[0]}</text>',
        f'<text x="14" y="{centre}" text-anchor="middle" {turned}>{axes[1]}</text>',
    ]


def _level(y: float, label: str) -> list[str]:
    return [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _EDGE}" y1="{y}" y2="{y}" stroke="#e3e8ee"/>',
        f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{label}</text>',
    ]


def _mark(x: float, label: str) -> str:
    return f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{label}</text>'


def _grid(axes: tuple[str, str], right: float, top: float) -> list[str]:
    lines = []
    for step in range(6):
        y, x = _y(top * step / 5, top), _x(right * step / 5, right)
        lines += _level(y, f"{top * step * 20:.0f} %")
        lines.append(_mark(x, f"{right * step / 5:.0f}"))
    return [*lines, *_named(axes)]


def growth(title: str, axes: tuple[str, str], series: Sequence[tuple[str, Sequence[Point]]]) -> str:
    """Return a picture of at most two lines over powers of ten, each over an axis that begins at 0.

    Args:
        axes: what the horizontal and the vertical axis mean.
        series: name and points of each line, whose first values are powers of ten.
    """
    points = [point for _, several in series for point in several]
    low, high = (log10(pick(x for x, _ in points)) for pick in (min, max))
    top = max(y for _, y in points) * 1.1

    def place(x: float, y: float) -> str:
        return f"{_x(log10(x) - low, max(high - low, 1.0))},{_y(y, top)}"

    parts = _begun(title)
    for step in range(6):
        y = _y(top * step / 5, top)
        parts += _level(y, f"{top * step / 5:,.0f}")
    for x in sorted({x for x, _ in points}):
        at = _x(log10(x) - low, max(high - low, 1.0))
        parts.append(_mark(at, f"{x:,.0f}"))
    for (name, several), colour, row in zip(series, _COLOURS, (40, 58), strict=False):
        line = " ".join(place(x, y) for x, y in several)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{line}"/>')
        parts.append(f'<text x="{_WIDTH - _EDGE}" y="{row}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join([*parts, *_named(axes), "</svg>", ""])


def logarithmic(title: str, axes: tuple[str, str], series: Sequence[tuple[str, Sequence[Point]]]) -> str:
    """Return a picture of at most two lines over powers of ten on both axes; a dashed one grows as they do.

    Args:
        axes: what the horizontal and the vertical axis mean.
        series: name and points of each line, all values above 0.
    """
    points = [point for _, several in series for point in several]
    left, right = floor(log10(min(x for x, _ in points))), ceil(log10(max(x for x, _ in points)))
    low, high = floor(log10(min(y for _, y in points))), ceil(log10(max(y for _, y in points)))

    def place(x: float, y: float) -> str:
        return f"{_x(log10(x) - left, right - left)},{_y(log10(y) - low, high - low)}"

    parts = _begun(title)
    for power in range(low, high + 1):
        y = _y(power - low, high - low)
        parts += _level(y, f"{10.0**power:g}")
    for power in range(left, right + 1):
        at = _x(power - left, right - left)
        parts.append(_mark(at, f"{10**power:,}"))
    last_x, last_y = max(series[0][1])
    begin = max(10.0**left, last_x * 10.0**low / last_y)
    line = f"{place(begin, last_y * begin / last_x)} {place(last_x, last_y)}"
    parts.append(f'<polyline fill="none" stroke="#9aa5b1" stroke-dasharray="5 5" points="{line}"/>')
    parts.append(f'<text x="{_WIDTH - _EDGE}" y="20" text-anchor="end" fill="#9aa5b1">dashed: linear</text>')
    for (name, several), colour, row in zip(series, ("#00798c", "#d1495b"), (40, 58), strict=False):
        line = " ".join(place(x, y) for x, y in several)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{line}"/>')
        parts.append(f'<text x="{_LEFT + 12}" y="{row + 12}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, *_named(axes), "</svg>", ""])
