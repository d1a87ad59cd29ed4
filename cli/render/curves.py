"""The S-curve of a layout: bars for the terminal, and a picture."""

from collections.abc import Iterator, Sequence
from html import escape

Point = tuple[float, float]
_BAR = 40
_WIDTH, _HEIGHT, _LEFT, _EDGE, _BOTTOM = 640, 360, 56, 24, 44


def bars(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each point: the resemblance, a bar as long as the probability, the probability."""
    for resemblance, probability in points:
        bar = "█" * round(probability * _BAR)
        yield f"{resemblance:5.2f}  {bar:<{_BAR}}  {probability:.4f}"


def picture(points: Sequence[Point], wanted: float, title: str) -> str:
    """Return the curve as SVG, with a line at the wanted resemblance."""
    line = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="16">{escape(title)}</text>',
    ]
    for step in range(6):
        share = step / 5
        parts += [
            f'<path d="M{_LEFT} {_y(share):.1f}H{_WIDTH - _EDGE}" stroke="#dde3e9"/>',
            f'<text x="{_LEFT - 8}" y="{_y(share) + 4:.1f}" text-anchor="end">{share:.1f}</text>',
            f'<text x="{_x(share):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{share:.1f}</text>',
        ]
    parts += [
        f'<path d="M{_x(wanted):.1f} {_y(0):.1f}V{_y(1):.1f}" stroke="#9aa5b1" stroke-dasharray="5 4"/>',
        f'<polyline points="{line}" fill="none" stroke="#d1495b" stroke-width="2.5"/>',
        f'<text x="{(_LEFT + _WIDTH - _EDGE) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">resemblance</text>',
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _EDGE)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _EDGE)
