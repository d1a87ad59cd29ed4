"""JSON that a command is given as a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shinglefold.errors import ConfigError, InputError

if TYPE_CHECKING:
    from shinglefold.ingest import Pipeline
    from shinglefold.model.scheme import Scheme


def read_json(path: str, what: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a file of JSON holds.

    Args:
        what: the word for it in an error, such as "pipeline".

    Raises:
        InputError: it can't be read.
        ConfigError: it is no JSON.
    """
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the {what} {path} is no JSON: {error}") from error


def load_pipeline(path: str | None, scheme: "Scheme", field: str) -> "Pipeline":
    """Return the pipeline of a file, or the one for pages where none is given.

    Args:
        field: where the pipeline for pages writes fingerprints; one from a file says it itself.

    Raises:
        InputError: the file can't be read.
        ConfigError: it is no JSON, or no pipeline; says where.
    """
    from shinglefold.ingest import Pipeline, default_definition

    return Pipeline.from_json(default_definition(field) if path is None else read_definition(path), scheme)


def read_definition(path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of a pipeline file.

    Raises:
        InputError: it can't be read.
        ConfigError: it is no JSON object.
    """
    found = read_json(path, "pipeline")
    if not isinstance(found, dict):
        raise ConfigError(f"the pipeline {path} is no object with a list 'processors'")
    return found
