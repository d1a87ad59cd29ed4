"""Numbers of bytes and shares, as people read them."""

_STEP = 1000.0
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size_of(count: int | None) -> str:
    """Return a number of bytes in the unit that leaves one to three digits before the point."""
    if count is None:
        return "?"
    if count < _STEP:
        return f"{count} bytes"
    number, unit = float(count), 0
    # What would be shown as 1000.0 belongs to the next unit.
    while round(number, 1) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.1f} {_UNITS[unit]}"


def share_of(share: float | None) -> str:
    """Return a share in percent; only all of it is 100 %, and only nothing is 0 %."""
    if share is None:
        return "-"
    if 0 < share < 1:
        return f"{min(99.9, max(0.1, share * 100)):.1f} %"
    return f"{share:.0%}".replace("%", " %")
