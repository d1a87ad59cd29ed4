"""Messages about the text fields of a stored index: the fields that it reads, and others with text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shinglefold.cli.shared.recipe import Target
from shinglefold.cli.shared.run_summary import unread_text, unstated_markup
from shinglefold.contracts.engine import Engine
from shinglefold.documents import without_path
from shinglefold.errors import ConfigError
from shinglefold.ingest.field_statistics import TextCoverage, has_usual_name, text_coverage
from shinglefold.ingest.pipeline.steps import raw_fields, source_fields, stripped_fields
from shinglefold.model.stored_fingerprint import placeholder_query
from shinglefold.rerank.index_fields import definition_of, paths

if TYPE_CHECKING:
    from shinglefold.ingest import Pipeline
    from shinglefold.model.recipe import Recipe

#: The number of documents in which texts are looked for.
_SAMPLE = 50


class TextFields(NamedTuple):
    """The warnings about the text fields that an index is read from.

    ``textless``: whether no document has text that is read; ``misread``: whether it lacks a field that is
    read, and no text or little of it is in the others; ``other``: the fields with the rest.
    """

    warnings: tuple[str, ...] = ()
    textless: bool = False
    misread: bool = False
    other: tuple[str, ...] = ()

    def check(self) -> None:
        """Check that the default fields hold most of the text.

        Raises:
            ConfigError: other fields hold it.
        """
        if self.misread and self.other:
            raise ConfigError(f"nothing was changed; name the fields with text: {'; '.join(self.warnings)}")


def text_fields(
    engine: Engine, target: Target, index: str, pipeline: "Pipeline", recipe: "Recipe"
) -> TextFields:
    """Return messages about the text fields of an index. Cost: one search for 50 documents."""
    body = {"size": _SAMPLE, "query": {"bool": {"must_not": [placeholder_query(recipe.field)]}}}
    hits = engine.search(index, body | engine.can.unaltered)["hits"]["hits"]
    sources = [without_path(hit["_source"], recipe.field) for hit in hits]
    fields = raw_fields(pipeline.steps, recipe.field)
    steps = pipeline.steps
    coverage = text_coverage(sources, fields, source_fields(steps), stripped_fields(steps))
    named = replace(target, index=index)
    warnings = (
        *_about_mappings(engine.mappings(index), named, fields, coverage),
        *_about_documents(coverage, named, fields),
    )
    return TextFields(warnings, coverage.textless, coverage.textless or coverage.misread, coverage.unread)


def _about_documents(coverage: TextCoverage, target: Target, fields: Sequence[str]) -> Iterator[str]:
    """Yield what the documents of the sample show."""
    count, index = coverage.documents, target.index
    other = coverage.unread
    if coverage.textless:
        none = "the document" if count == 1 else f"none of the {count} documents"
        has = "has no text" if count == 1 else "has text"
        problem = f"{none} of {index} looked at {has} in {', '.join(fields)}, so that nothing would fold"
        take = f"; there is text in {', '.join(other)}; to take it from there: {target.take_text_from(other)}"
        yield problem + (take if other else "")
        return
    if coverage.markup:
        yield f"{unstated_markup(coverage.markup)}; to take it off: {target.say_html()}"
    if coverage.lacking and (coverage.unread or coverage.titles_alone):
        yield f"most of the {count} documents of {index} looked at lack {', '.join(coverage.lacking)}"
    if other:
        yield unread_text(coverage, target.take_text_from)
    elif coverage.titles_alone and coverage.lacking:
        yield f"their fingerprints are made of {', '.join(coverage.read)} alone"


def _about_mappings(
    mappings: Mapping[str, Any], target: Target, fields: Sequence[str], coverage: TextCoverage
) -> Iterator[str]:
    """Yield messages about fields that are read and occur in no document, by the mappings."""
    absent = [name for name in fields if name not in coverage.read]
    for name in absent:
        found = definition_of(mappings, name)
        if found is not None and found[0] != name:
            yield f"{name} is not a field of the documents: they have its text in {found[0]}"
    unmapped = [name for name in absent if definition_of(mappings, name) is None]
    known = [
        name
        for name in paths(mappings)
        if has_usual_name(name) and name not in fields and (definition_of(mappings, name) or ("",))[0] == name
    ]
    if unmapped and known and not coverage.documents:
        take = target.take_text_from([name for name in [*known, *fields] if name not in unmapped])
        yield (
            f"{target.index} maps no field {', '.join(unmapped)}, and {', '.join(known)} "
            f"{'is' if len(known) == 1 else 'are'} not read; to take the text from there: {take}"
        )
