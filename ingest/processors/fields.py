"""Processors on whole fields and documents: set, append, rename, remove, drop, fail."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from shinglefold.contracts.engine import Document
from shinglefold.documents import MISSING, get, put, render, without_path
from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.processors.context import (
    DocumentProcessor,
    Options,
    ProcessorResult,
    Tools,
    has_value,
)


class Set(DocumentProcessor):
    """Write a value, in which ``{{{path}}}`` stands for other fields, or copy a field.

    Options: ``field`` (a template too), ``value`` or ``copy_from``, ``override`` (true; false keeps
    existing values), ``ignore_empty_value`` (false).
    """

    type: ClassVar[str] = "set"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.field = options.text("field")
        if options.has("value") == options.has("copy_from"):
            raise ConfigError(f"{options.place}: give exactly one of 'value' and 'copy_from'")
        self.value = options.value("value")
        self.copy_from = options.optional("copy_from")
        self.override = options.flag("override", True)
        self.ignore_empty = options.flag("ignore_empty_value", False)

    def _one(self, document: Document) -> Document:
        field = render(self.field, document)
        if not self.override and get(document, field) not in (MISSING, None):
            return document
        value = self._value_to_copy(document) if self.copy_from else _render_values(self.value, document)
        return document if self.ignore_empty and value in (None, "") else put(document, field, value)

    def _value_to_copy(self, document: Document) -> Any:  # noqa: ANN401 - JSON
        value = get(document, self.copy_from or "")
        if value is not MISSING:
            return deepcopy(value)
        if self.ignore_empty:
            return None
        raise ProcessorError(f"field [{self.copy_from}] is missing")


def _render_values(value: Any, document: Document) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return render(value, document)
    if isinstance(value, list):
        return [_render_values(item, document) for item in value]
    if isinstance(value, dict):
        return {key: _render_values(item, document) for key, item in value.items()}
    return value


class Append(DocumentProcessor):
    """Add values to a list; a missing field or a single value becomes a list.

    Options: ``field`` (a template too), ``value`` (one or a list; templates too), ``allow_duplicates``
    (true; false adds only new values).
    """

    type: ClassVar[str] = "append"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.field = options.text("field")
        if not options.has("value"):
            raise ConfigError(f"{options.place}: the option 'value' is required")
        self.value = options.value("value")
        self.allow_duplicates = options.flag("allow_duplicates", True)

    def _one(self, document: Document) -> Document:
        field = render(self.field, document)
        found = get(document, field)
        there = [] if found is MISSING or found is None else found if isinstance(found, list) else [found]
        added = _render_values(self.value, document)
        for value in added if isinstance(added, list) else [added]:
            if self.allow_duplicates or not has_value(there, value):
                there = [*there, value]
        return put(document, field, there)


class Rename(DocumentProcessor):
    """Rename a field.

    Options: ``field``, ``target_field`` (templates too), ``ignore_missing`` (false), ``override`` (false: an
    existing target fails the document).
    """

    type: ClassVar[str] = "rename"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.field = options.text("field")
        self.target = options.text("target_field")
        self.ignore_missing = options.flag("ignore_missing", False)
        self.override = options.flag("override", False)

    def _one(self, document: Document) -> Document:
        field, target = render(self.field, document), render(self.target, document)
        value = get(document, field)
        if value is MISSING:
            if self.ignore_missing:
                return document
            raise ProcessorError(f"field [{field}] is missing")
        if not self.override and get(document, target) is not MISSING:
            raise ProcessorError(f"field [{target}] exists already; set override to replace it")
        return put(without_path(document, field), target, value)


class Remove(DocumentProcessor):
    """Remove fields.

    Options: ``field`` (one or a list), ``ignore_missing`` (false).
    """

    type: ClassVar[str] = "remove"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.fields = options.names("field")
        self.ignore_missing = options.flag("ignore_missing", False)

    def _one(self, document: Document) -> Document:
        for template in self.fields:
            field = render(template, document)
            if not self.ignore_missing and get(document, field) is MISSING:
                raise ProcessorError(f"field [{field}] is missing")
            document = without_path(document, field)
        return document


class Drop:
    """Drop documents, usually those that match an ``if``. No options."""

    type: ClassVar[str] = "drop"

    def __init__(self, options: Options, tools: Tools) -> None:
        pass

    def apply(self, documents: Sequence[Document]) -> list[ProcessorResult]:
        """Drop all documents."""
        return [None] * len(documents)


class Fail:
    """Fail documents on purpose, usually those that match an ``if``.

    Options: ``message``, in which ``{{{path}}}`` stands for fields.
    """

    type: ClassVar[str] = "fail"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.message = options.text("message")

    def apply(self, documents: Sequence[Document]) -> list[ProcessorResult]:
        """Fail all documents."""
        return [ProcessorError(render(self.message, document)) for document in documents]
