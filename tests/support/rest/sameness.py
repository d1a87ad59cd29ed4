"""Whether two answers to one request are the same, but for what no two answers have in common."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from support.rest.raw import Answer

#: Numbers and names that differ from one request to the next, as JSON and as YAML.
_NOISE = tuple(
    (re.compile(pattern), rf"\g<1>{put}")
    for pattern, put in (
        (r'("?\b(?:\w*took\w*|_seq_no|_primary_term|creation_\w+|\w+_in_nanos)"? ?: ?)"?-?\d+"?', "0"),
        # The phases in "phase_took".
        (r'("?\b(?:dfs_pre_query|query|fetch|dfs_query|expand|can_match)"? ?: ?)\d+', "0"),
        (r'("(?:_scroll_id|pit_id|id|index_uuid|uuid)" ?: ?)"[\w=+/\-:]{13,}"', '"x"'),
        (r'((?:"_id" ?: ?"|_id: "|_doc/))[\w\-]{20}(?![\w\-])', "made"),
        (r"(\[(?:INDEX[\w\-]*/)?)[\w\-]{22}\b", "uuid"),
        (r"((?:context found for id|has seqNo) \[)\d+", "0"),
        (r"(caller-)[0-9a-f]{32}", "x"),
        (r'("stack_trace" ?: ?")(?:[^"\\]|\\.)*', "x"),
    )
)
#: Headers of a connection, not of an answer.
_OF_CONNECTIONS = {"date", "server", "connection", "keep-alive", "transfer-encoding", "content-length"}
#: Headers whose values no two answers have in common.
_OF_ANSWERS = {"task_resource_usage"}
#: Engines compress the shortest answers, too.
_OF_OWN_ANSWERS = {"content-encoding", "vary"}
#: What the gateway adds by its own name.
_OWN = "x-shinglefold"
_FIELD = "_dedup"


def without_noise(text: str, names: Mapping[str, str]) -> str:
    """Return a text without what differs from one request to the next; indices have their common names."""
    for name, own in names.items():
        text = text.replace(own, name)
    for pattern, put in _NOISE:
        text = pattern.sub(put, text)
    return text


def unlike(
    direct: Answer,
    through: Answer,
    method: str,
    names: tuple[Mapping[str, str], Mapping[str, str]],
    exact: bool,
) -> Iterator[str]:
    """Yield how an answer through the gateway differs from the direct one.

    Args:
        names: of the indices, for each of the two.
        exact: whether each character of the body must be the same; else the JSON without fingerprints.
    """
    if direct.status != through.status:
        yield f"status {direct.status} became {through.status}: {through.body[:300]!r}"
    for name in sorted({*direct.headers, *through.headers} - _OF_CONNECTIONS):
        one, other = direct.headers.get(name), through.headers.get(name)
        if one is not None and other is not None:
            one, other = without_noise(one, names[0]), without_noise(other, names[1])
        if (name in _OF_ANSWERS and one and other) or (name in _OF_OWN_ANSWERS and not exact):
            continue
        if one != other and not name.startswith(_OWN):
            yield f"header {name}: {one!r} became {other!r}"
    # A document has a fingerprint more.
    if (
        method == "HEAD"
        and exact
        and direct.headers.get("content-length") != through.headers.get("content-length")
    ):
        yield f"length {direct.headers.get('content-length')} became {through.headers.get('content-length')}"
    one, other = without_noise(direct.text, names[0]), without_noise(through.text, names[1])
    if one != other and (exact or _read(one) != _read(other)):
        at = next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
            min(len(one), len(other)),
        )
        begin = max(0, at - 80)
        yield f"body {one[begin : at + 200]!r} became {other[begin : at + 200]!r}"


def _read(text: str) -> Any:
    try:
        return _unsigned(json.loads(text))
    except ValueError:
        return text


def _unsigned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unsigned(part) for name, part in value.items() if name != _FIELD}
    return [_unsigned(part) for part in value] if isinstance(value, list) else value
