"""Shell completion: commands and options by name, and files as the shell completes them."""

import os
import subprocess

import pytest
from support.commands import PROGRAM


def completed(*words: str) -> list[str]:
    """Return what the shell is told about the last of some words."""
    environment = {
        **os.environ,
        "_SHINGLEFOLD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["shinglefold", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(PROGRAM, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["index", "art"], ["file,art"]),
        (["groups", "--pairs", "art"], ["file,art"]),
        (["compare", "old.txt", "ne"], ["file,ne"]),
        (["index", "--replay", "fail"], ["file,fail"]),
        (["index", "--pipeline", "pi"], ["file,pi"]),
        (["search", "--config", "sh"], ["file,sh"]),
        (["stats", "--engine", "./st"], ["dir,./st"]),
        (["search", "--linkage", "con"], ["plain,connected"]),
        (["sta"], ["plain,stats"]),
        (["delete", "--dr"], ["plain,--dry-run"]),
        (["delete", "--engine", "''", "--config", "''", "--dr"], ["plain,--dry-run"]),
    ],
)
def test_what_may_follow(words, told):
    assert completed(*words) == told
