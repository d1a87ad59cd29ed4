"""``shinglefold doctor INDEX``: whether the stored fingerprints are those of the texts."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.maintenance import opened_index, reporter, walk_options
from shinglefold.cli.output import printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.ingest.maintenance import Diagnosis

#: Findings in words, in the order of the report.
_SAID = {
    "sound": "have the fingerprint of their text",
    "unsigned": "have no fingerprint",
    "other_scheme": "have one of another scheme",
    "stale": "have one of an earlier text: somebody updated the text alone",
    "damaged": "have one with parts missing or altered",
    "unreadable": "can't be fingerprinted: the pipeline fails on them",
    "dropped": "are such as the pipeline drops",
}
_MENDED = ("unsigned", "other_scheme", "stale", "damaged")


@command(
    examples="""
    shinglefold doctor pages
    """
)
@click.argument("index", metavar="INDEX")
@walk_options
@click.pass_obj
def doctor(
    invocation: Invocation,
    /,
    *,
    index: str,
    engine: str | None,
    pipeline: str | None,
    part: str,
    requests_per_second: float,
    workers: int | None,
    preset: str | None,
) -> int:
    """Examine an INDEX: its mappings, and whether each stored fingerprint is that of its text.

    Nothing is changed. Exit code 3 says that something has to be mended; the last lines say how.
    """
    from shinglefold.cli.progress import progress_bar
    from shinglefold.ingest.maintenance import DoctorOptions, Slice, diagnose

    share = Slice.parse(part)
    with opened_index(invocation, engine, pipeline, preset) as (opened, chosen, settings):
        count = settings.workers if workers is None else workers
        options = DoctorOptions(settings.field, share, requests_per_second, count)
        with progress_bar("doctor") as bar:
            found = diagnose(opened, index, chosen, options, progress=reporter(bar))
    if invocation.json:
        write_json(found.to_json())
    else:
        for line in _lines(found):
            write_line(printable(line))
    return DONE if found.healthy else PARTLY


def _lines(found: "Diagnosis") -> list[str]:
    lines = [f"{found.documents:,} documents in {found.index}, scheme {found.scheme}"]
    for finding, said in _SAID.items():
        count = found.findings.get(finding, 0)
        if count:
            ids = found.listed.get(finding, ())
            lines.append(f"  {count:,} {said}{': ' if ids else ''}{', '.join(ids)}")
    lines += [f"  of scheme {scheme}: {count:,}" for scheme, count in found.schemes.items()]
    lines += [f"mappings: {problem}" for problem in found.mapping]
    lines += [f"remark: {remark}" for remark in found.remarks]
    return [*lines, *_remedies(found)]


def _remedies(found: "Diagnosis") -> list[str]:
    if found.healthy:
        return ["all is well"]
    remedies = []
    if found.mapping:
        remedies.append(f"shinglefold setup {found.index}")
    if any(found.findings.get(finding) for finding in _MENDED):
        remedies.append(f"shinglefold backfill {found.index}")
    if found.findings.get("unreadable"):
        remedies.append("mend the documents the pipeline fails on, or the pipeline")
    return [f"to mend it: {', then '.join(remedies)}"]
