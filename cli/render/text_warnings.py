"""What a command warns of that has written what it could: fields that no document has, and missing texts."""

from collections.abc import Callable, Iterator, Sequence

from shinglefold.cli.framework.command import DONE, PARTLY
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.model.recipe import LANGUAGE


def named_language(field: str) -> str:
    """Return the field with languages, where it is one that somebody has named."""
    return "" if field == LANGUAGE else field


def is_in_vain(watch: FieldWatch, *, named: bool) -> bool:
    """Tell whether a run is no success, though nothing failed: a field is mistyped, or no text was found.

    Args:
        named: the fields were named, so that each of them is expected.
    """
    return bool(watch.textless or watch.undeclared or (named and watch.absent))


def code_of(code: int, watch: FieldWatch, *, named: bool) -> int:
    """Return the exit code of a run, given what it would be but for the fields."""
    return PARTLY if code == DONE and is_in_vain(watch, named=named) else code


def text_warnings(
    watch: FieldWatch, unsigned: int, named: bool, other: Callable[[Sequence[str]], str]
) -> Iterator[str]:
    """Yield what a user should know of the texts that were read.

    Args:
        unsigned: documents whose text is too short for a signature, or missing.
        named: the fields were named, so that each of them is expected.
        other: from fields to the command that takes the text from them.
    """
    if not watch.documents:
        return
    if watch.undeclared:
        yield f"no document has the field {watch.undeclared}, which languages are to come from"
    absent = watch.absent
    if absent and (named or len(absent) == len(watch.fields)):
        yield f"no document has the field{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
    few = 2 * unsigned > watch.documents
    if few:
        yield (
            f"{unsigned:,} of {watch.documents:,} documents have too little text for a signature, so that "
            f"they fold only with exact copies; text is taken from {', '.join(watch.fields)}"
        )
    elsewhere = watch.elsewhere() if few or absent else ()
    if elsewhere:
        kept = [name for name in watch.fields if name in watch.present and name not in elsewhere]
        fields = list(dict.fromkeys([*elsewhere, *kept]))
        yield f"there is text in {', '.join(elsewhere)}; to take it from there: {other(fields)}"
