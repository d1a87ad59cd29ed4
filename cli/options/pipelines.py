"""Pipelines for commands: from a JSON file, from a recipe, or the one for pages."""

from typing import TYPE_CHECKING, Any

from shinglefold.cli.options.json_files import read_json
from shinglefold.errors import ConfigError
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme

if TYPE_CHECKING:
    from shinglefold.ingest import Pipeline


def load_pipeline(path: str | None, scheme: Scheme, field: str = FIELD) -> "Pipeline":
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
