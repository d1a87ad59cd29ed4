"""``minimum_should_match``: a number, a percentage, either negative to say how many may be missing."""

import re

from shinglefold.errors import UnsupportedQuery


def minimum(given: object, clauses: int) -> int:
    """Return how many of some optional clauses must match; more than there are means none can.

    Raises:
        UnsupportedQuery: it is neither a number nor a percentage.
    """
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch(r"-?\d{1,6}%?", text):
        raise UnsupportedQuery(
            f'minimum_should_match: expected a number or a percentage ("75%"), got {given!r}'
        )
    # Rounded towards zero, as Lucene does, also for what may be missing.
    wanted = int(clauses * int(text[:-1]) / 100) if text.endswith("%") else int(text)
    return max(wanted + clauses if text.startswith("-") else wanted, 0)
