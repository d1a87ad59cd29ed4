"""The ``if`` of a processor: a safe subset of Painless, the servers' script language.

::

    condition  := all ( '||' all )*
    all        := negation ( '&&' negation )*
    negation   := '!' negation | comparison
    comparison := value ( ( '==' | '!=' | '<=' | '>=' | '<' | '>' ) value | 'instanceof' TYPE )?
    value      := STRING | NUMBER | 'true' | 'false' | 'null' | '(' condition ')' | field
    field      := 'ctx' ( '.' NAME | '?.' NAME | '[' STRING ']' | '.' METHOD '(' value ')' )*

Access to a member of null fails the document, as on the servers; ``?.`` returns null instead.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from shinglefold.contracts.engine import Document
from shinglefold.documents import json_type
from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.processors.context import equal_values, has_value

_Node = Callable[[Document], Any]
_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\|\||&&|[=!<>]=|\?\.|[!<>().\[\]@,]))"
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "String": (str,),
    "Number": (int, float),
    "Boolean": (bool,),
    "List": (list,),
    "Map": (dict,),
}


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _contains(owner: str | list[Any], wanted: Any) -> bool:  # noqa: ANN401 - JSON
    return wanted in owner if isinstance(owner, str) else has_value(owner, wanted)


#: Methods by name: types of the owner, number of arguments, implementation.
_METHODS: Mapping[str, tuple[tuple[type, ...], int, Callable[..., Any]]] = {
    "contains": ((str, list), 1, _contains),
    "containsKey": ((dict,), 1, lambda owner, name: isinstance(name, str) and name in owner),
    "startsWith": ((str,), 1, str.startswith),
    "endsWith": ((str,), 1, str.endswith),
    "isEmpty": ((str, list, dict), 0, lambda owner: not owner),
    "length": ((str,), 0, len),
    "size": ((list, dict), 0, len),
    "toLowerCase": ((str,), 0, str.lower),
    "toUpperCase": ((str,), 0, str.upper),
}
#: The most tokens of a condition, so that its nesting fits Python's stack; the most digits of a number.
_MOST_TOKENS, _LONGEST_NUMBER = 300, 19
#: The most characters of a condition shown in a message.
_QUOTED = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition."""

    source: str
    node: _Node

    def holds(self, document: Document) -> bool:
        """Return whether the condition is true for a document.

        Raises:
            ProcessorError: it accesses a member of null, compares values without an order, or is not boolean.
        """
        return _truth(self.node(document), self.source)


def parse_condition(source: str, place: str) -> Condition:
    """Parse a condition.

    Raises:
        ConfigError: it is outside the subset; the message names the step, and the position in the text.
    """
    return Condition(source, _Parser(source, place).parse())


def _truth(value: object, source: str) -> bool:
    if not isinstance(value, bool):
        raise ProcessorError(f"condition [{source}]: {json_type(value)} is neither true nor false")
    return value


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, source: str, place: str) -> None:
        self.source = source
        self.place = place
        self.tokens: list[tuple[str, str, int]] = []
        self.next = 0
        self._split()

    def _split(self) -> None:
        at, end = 0, len(self.source.rstrip())
        while at < end:
            match = _TOKEN.match(self.source, at)
            if match is None:
                self._refuse(at)
            self.tokens.append((match.lastgroup or "", match[match.lastgroup or 0], at))
            at = match.end()
        if len(self.tokens) > _MOST_TOKENS:
            raise ConfigError(
                f"{self.place}: the condition [{self._quoted}] has {len(self.tokens):,} parts, at most "
                f"{_MOST_TOKENS} are supported: use several steps, or set a field first"
            )

    @property
    def _quoted(self) -> str:
        return self.source if len(self.source) <= _QUOTED else f"{self.source[:_QUOTED]}…"

    def _refuse(self, at: int) -> NoReturn:
        raise ConfigError(
            f"{self.place}: the condition [{self._quoted}] is not supported from character {at + 1} on. "
            f"Allowed: ctx fields, text, numbers, true, false, null, == != < <= > >= && || ! ( ), instanceof "
            f"with {', '.join(_TYPES)}, and the methods {', '.join(_METHODS)}."
        )

    def _peek(self) -> tuple[str, str, int]:
        return self.tokens[self.next] if self.next < len(self.tokens) else ("end", "", len(self.source))

    def _take(self, *texts: str) -> str:
        """Consume the next token if it is one of these signs or names."""
        text = self._peek()[1]
        if text not in texts:
            return ""
        self.next += 1
        return text

    def _need(self, kind: str, text: str = "") -> str:
        found, value, at = self._peek()
        if found != kind or (text and value != text):
            self._refuse(at)
        self.next += 1
        return value

    def parse(self) -> _Node:
        try:
            node = self._any()
        except RecursionError:
            self._refuse(0)
        if self._peek()[0] != "end":
            self._refuse(self._peek()[2])
        return node

    def _any(self) -> _Node:
        nodes = [self._all()]
        while self._take("||"):
            nodes.append(self._all())
        source = self.source
        return nodes[0] if len(nodes) == 1 else lambda doc: any(_truth(node(doc), source) for node in nodes)

    def _all(self) -> _Node:
        nodes = [self._negation()]
        while self._take("&&"):
            nodes.append(self._negation())
        source = self.source
        return nodes[0] if len(nodes) == 1 else lambda doc: all(_truth(node(doc), source) for node in nodes)

    def _negation(self) -> _Node:
        if self._take("!"):
            node, source = self._negation(), self.source
            return lambda doc: not _truth(node(doc), source)
        return self._comparison()

    def _comparison(self) -> _Node:
        one = self._value()
        if self._take("instanceof"):
            return self._instance(one)
        sign = self._take("==", "!=", *_COMPARE)
        if not sign:
            return one
        other = self._value()
        if sign in _COMPARE:
            return self._order(one, other, sign)
        return lambda doc: equal_values(one(doc), other(doc)) == (sign == "==")

    def _instance(self, node: _Node) -> _Node:
        at = self._peek()[2]
        name = self._need("name")
        if name not in _TYPES:
            self._refuse(at)
        kinds = _TYPES[name]
        # In Python, a bool is an int.
        return lambda doc: (
            isinstance(value := node(doc), kinds) and (name == "Boolean" or not isinstance(value, bool))
        )

    def _order(self, one: _Node, other: _Node, sign: str) -> _Node:
        source = self.source

        def compare(doc: Document) -> bool:
            a, b = one(doc), other(doc)
            if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
                raise ProcessorError(
                    f"condition [{source}]: {json_type(a)} {sign} {json_type(b)} has no meaning"
                )
            try:
                return _COMPARE[sign](a, b)
            except TypeError as error:
                raise ProcessorError(f"condition [{source}]: {error}") from error

        return compare

    def _value(self) -> _Node:
        kind, text, at = self._peek()
        if self._take("("):
            node = self._any()
            self._need("sign", ")")
            return node
        if kind == "name" and text == "ctx":
            self.next += 1
            return self._field()
        literal = self._literal(kind, text, at)
        self.next += 1
        return lambda _: literal

    def _literal(self, kind: str, text: str, at: int) -> str | float | bool | None:
        if kind == "string":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind == "number":
            # Integers of the servers have 64 bits.
            if len(text) > _LONGEST_NUMBER:
                self._refuse(at)
            return float(text) if "." in text else int(text)
        if text not in ("true", "false", "null"):
            self._refuse(at)
        return {"true": True, "false": False, "null": None}[text]

    def _field(self) -> _Node:
        node: _Node = lambda doc: doc  # noqa: E731 - the ctx itself
        while step := self._take(".", "?.", "["):
            at = self._peek()[2]
            if step == "[":
                name = re.sub(r"\\(.)", r"\1", self._need("string")[1:-1])
                self._need("sign", "]")
            else:
                name = self._need("name")
            if step != "[" and self._take("("):
                node = self._method(node, name, step == "?.", at)
            else:
                node = self._step(node, name, step == "?.")
        return node

    def _step(self, owner: _Node, name: str, null_ok: bool) -> _Node:
        source = self.source

        def step(doc: Document) -> Any:  # noqa: ANN401 - JSON
            value = owner(doc)
            if isinstance(value, dict):
                return value.get(name)
            if value is None and null_ok:
                return None
            raise ProcessorError(f"condition [{source}]: no [{name}] in {json_type(value)}; write ?.{name}")

        return step

    def _method(self, owner: _Node, name: str, null_ok: bool, at: int) -> _Node:
        if name not in _METHODS:
            self._refuse(at)
        kinds, count, function = _METHODS[name]
        arguments = [self._value() for _ in range(count)]
        self._need("sign", ")")
        source = self.source

        def call(doc: Document) -> Any:  # noqa: ANN401 - JSON
            value = owner(doc)
            if value is None and null_ok:
                return None
            given = [argument(doc) for argument in arguments]
            texts = all(isinstance(one, str) for one in given)
            if not isinstance(value, kinds) or (isinstance(value, str) and not texts):
                raise ProcessorError(f"condition [{source}]: {json_type(value)} has no such {name}")
            return function(value, *given)

        return call
