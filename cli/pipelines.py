"""A pipeline from its JSON file."""

import json
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.scheme import Scheme


def load_pipeline(path: str | None, scheme: Scheme) -> Pipeline:
    """Return the pipeline of a file, or the one for pages where none is given.

    Raises:
        InputError: the file can't be read.
        ConfigError: it is no JSON, or no pipeline; says where.
    """
    return Pipeline.from_json(default_definition() if path is None else _read(path), scheme)


def _read(path: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the pipeline {path}: {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the pipeline {path} is no JSON: {error}") from error
