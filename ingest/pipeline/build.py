"""From a pipeline's JSON to its steps, with errors that say where in the pipeline they are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import Processor
from shinglefold.errors import ConfigError
from shinglefold.ingest.pipeline.condition import Condition, parse_condition
from shinglefold.ingest.pipeline.steps import Step
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.dates import Date
from shinglefold.ingest.processors.fields import Append, Drop, Fail, Remove, Rename, Set
from shinglefold.ingest.processors.main_content import MainContent
from shinglefold.ingest.processors.options import Options
from shinglefold.ingest.processors.supershingle import Supershingle
from shinglefold.ingest.processors.texts import Canonicalize, DetectLanguage, HtmlStrip
from shinglefold.ingest.processors.values import Convert, Gsub, Join, Lowercase, Split, Trim, Uppercase
from shinglefold.options.validation import expected
from shinglefold.registry import PROCESSORS, load_plugin

#: Makes a processor from its options; must take every option it knows.
Factory = Callable[[Options, Tools], Processor]

_CLASSES = (
    Append,
    Canonicalize,
    Convert,
    Date,
    DetectLanguage,
    Drop,
    Fail,
    Gsub,
    HtmlStrip,
    Join,
    Lowercase,
    MainContent,
    Remove,
    Rename,
    Set,
    Split,
    Supershingle,
    Trim,
    Uppercase,
)
BUILT_IN: Mapping[str, Factory] = {made.type: made for made in _CLASSES}


def build_steps(
    definitions: Sequence[Any], tools: Tools, factories: Mapping[str, Factory], where: str
) -> tuple[Step, ...]:
    """Return the steps of a list of processors.

    Args:
        where: the list's name in messages, such as ``processors`` or ``processors[2].on_failure``.

    Raises:
        ConfigError: a processor or an option is not valid.
    """
    return tuple(
        _step(definition, tools, factories, f"{where}[{number}]")
        for number, definition in enumerate(definitions)
    )


def _step(definition: object, tools: Tools, factories: Mapping[str, Factory], where: str) -> Step:
    if not isinstance(definition, Mapping) or len(definition) != 1:
        raise ConfigError(f'{where}: a processor is an object with one key, such as {{"drop": {{}}}}')
    name, values = next(iter(definition.items()))
    factory = factories.get(str(name)) or load_plugin(
        PROCESSORS, f"processor (in {where})", str(name), factories
    )
    options = Options(values, _place(where, str(name), values))
    tag = options.optional("tag")
    description = options.optional("description")
    condition = _condition(options)
    ignore_failure = options.flag("ignore_failure", False)
    handlers = build_steps(_handlers(options), tools, factories, f"{where}.on_failure")
    processor = factory(options, tools)
    options.done()
    if not isinstance(processor, Processor):
        raise ConfigError(f"{where}: the plugin {name!r} made {processor!r:.100}, which is no processor")
    return Step(processor, condition, tag, description, ignore_failure, handlers)


def _place(where: str, name: str, values: object) -> str:
    tag = values.get("tag") if isinstance(values, Mapping) else None
    return f"{where} {name}" + (f", tag {tag!r}" if tag else "")


def _condition(options: Options) -> Condition | None:
    source = options.optional("if")
    return None if source is None else parse_condition(source, options.place)


def _handlers(options: Options) -> list[Any]:
    if options.has("on_failure"):
        return handlers(options.items("on_failure"), options.place)
    return options.items("on_failure")


def handlers(found: object, place: str) -> list[Any]:
    """Return a list of failure handlers; as on the servers it must not be empty."""
    if not isinstance(found, list):
        raise expected(f"{place}: 'on_failure'", "a list", found)
    if not found:
        raise ConfigError(f"{place}: 'on_failure' must not be empty; leave it out")
    return found
