"""``shinglefold simulate``: a pipeline tried on documents, without an index."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import write_json
from shinglefold.cli.options.definitions import chosen_scheme, preset_option


@command(
    examples="""
    shinglefold simulate --pipeline pipeline.json documents.jsonl
    echo '{"title": "Мост", "body": "Мост закроют на ремонт"}' | shinglefold simulate --verbose
    """
)
@click.argument("documents", default="-", metavar="[FILE]")
@click.option("--pipeline", metavar="FILE", help="Ingest pipeline as JSON; by default the one for pages.")
@click.option("--verbose", is_flag=True, help="Show the document after every step.")
@preset_option
@click.pass_obj
def simulate(
    invocation: Invocation, /, *, documents: str, pipeline: str | None, verbose: bool, preset: str | None
) -> int:
    """Try an ingest pipeline on documents.

    FILE holds documents as JSON lines, or the body of a request to _ingest/pipeline/_simulate; by default it
    is standard input. The answer has the shape of that request's. Exit code 3: some documents failed.
    """
    from shinglefold.cli.options.json_files import load_pipeline
    from shinglefold.errors import InputError

    given = read_samples(documents)
    if not given:
        raise InputError(
            f"{'standard input' if documents == '-' else documents} holds no documents; write one a line"
        )
    chosen = load_pipeline(pipeline, chosen_scheme(invocation, preset), invocation.settings().field)
    answer = chosen.simulate(given, verbose=verbose)
    write_json(answer)
    return PARTLY if any(_failed(one) for one in answer["docs"]) else DONE


def read_samples(path: str) -> list[dict[str, Any]]:
    """Return documents as ``{"_index", "_id", "_source"}`` objects.

    Raises:
        InputError: the file can't be read, or a line is no JSON object.
    """
    from shinglefold.errors import InputError, reason_of

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}; give a file of JSON lines") from error
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return [
            _sample(_line(line, number)) for number, line in enumerate(text.splitlines(), 1) if line.strip()
        ]
    if isinstance(whole, Mapping) and isinstance(whole.get("docs"), list):
        whole = whole["docs"]
    return [_sample(one) for one in (whole if isinstance(whole, list) else [whole])]


def _line(line: str, number: int) -> object:
    from shinglefold.errors import InputError

    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number} is no JSON: {error}; write one document a line") from error


def _sample(value: object) -> dict[str, Any]:
    from shinglefold.ingest.readers.record import to_document

    if isinstance(value, Mapping) and isinstance(value.get("_source"), Mapping):
        return dict(value)
    document = to_document(value)
    id_ = document.pop("_id", None)
    return {**({} if id_ is None else {"_id": id_}), "_source": document}


def _failed(one: Mapping[str, Any] | None) -> bool:
    if one is None:
        return False
    steps = one.get("processor_results", ())
    return "error" in one or bool(steps and "error" in steps[-1])
