"""A pipeline from its JSON file."""

import json
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.scheme import Scheme


def load_pipeline(path: str | None, scheme: Scheme, field: str = "dedup") -> Pipeline:
    """Return the pipeline of a file, or the one for pages where none is given.

    Args:
        field: where the pipeline for pages writes fingerprints; one from a file says it itself.

    Raises:
        InputError: the file can't be read.
        ConfigError: it is no JSON, or no pipeline; says where.
    """
    return Pipeline.from_json(_for_pages(field) if path is None else _read(path), scheme)


def _for_pages(field: str) -> dict[str, Any]:
    definition = default_definition()
    for processor in definition["processors"]:
        if "supershingle" in processor:
            processor["supershingle"]["target_field"] = field
        if processor.get("set", {}).get("copy_from") == "dedup.lang":
            processor["set"]["copy_from"] = f"{field}.lang"
    return definition


def _read(path: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the pipeline {path}: {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the pipeline {path} is no JSON: {error}") from error
