"""Commands of the program: what they read, how one ended and what it wrote."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

#: A text with a signature.
TEXT = "The old bridge is closed until Monday because the river rises, buses take another way."
#: The program in a process of its own.
PROGRAM = [sys.executable, "-c", "import sys; from shinglefold.cli.main import main; sys.exit(main())"]


class Ran(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def check(self, code: int, *told: str) -> "Ran":
        """Check the exit code and that standard error has these words."""
        missing = [words for words in told if words not in self.err]
        assert (self.code, missing) == (code, []), self
        return self


def json_lines(*documents: object) -> str:
    """Return documents as a file of JSON lines has them."""
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)


def write_lines(path: str | Path, *documents: object) -> str:
    """Write documents as JSON lines, and return the path."""
    Path(path).write_text(json_lines(*documents), "utf-8")
    return str(path)
