"""JSON that a command is given as a file."""

import json
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, InputError


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
