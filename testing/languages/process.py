"""Results of a language in new and in forked processes, without a network.

Run as a module, it reads a request from standard input and prints the results.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class

Answers = Mapping[str, str | None]
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ProcessAnswers:
    """The results of one process, of its forks, and the socket events it caused."""

    version: str
    answers: Answers
    forked: Mapping[str, Answers]
    network: tuple[str, ...]


def ask_process(
    code: str, options: CanonOptions, words: Sequence[str], seeds: Sequence[int]
) -> tuple[ProcessAnswers, ...]:
    """Return the results of a new process for each hash seed; they run in parallel."""
    request = json.dumps({"code": code, "options": asdict(options), "words": list(words)})
    processes = [_start(seed) for seed in seeds]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(request.encode("ascii"))
        process.stdin.close()
        process.stdin = None
    return tuple(_finish(process) for process in processes)


def _start(seed: int) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(  # noqa: S603 - ourselves
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _finish(process: subprocess.Popen[bytes]) -> ProcessAnswers:
    try:
        output, complaints = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise AssertionError(f"a new process gave no answer within {_SECONDS} s") from error
    assert process.returncode == 0, f"a new process failed: {complaints.decode('utf-8', 'replace')[-2000:]}"
    found = json.loads(output)
    return ProcessAnswers(found["version"], found["answers"], found["forked"], tuple(found["network"]))


def main() -> None:
    """Process one request."""
    network: list[str] = []
    sys.addaudithook(lambda event, _: _refuse(event, network))
    request = json.load(sys.stdin)
    cls = language_class(request["code"])
    language = cls(CanonOptions(**request["options"]))
    unused = cls(CanonOptions(**request["options"]))
    words: list[str] = request["words"]
    answers = _ask(language, words)
    forked: dict[str, Answers] = {}
    if hasattr(os, "fork"):
        forked["with an instance in use"] = _ask_forked(language, words)
        forked["with an instance not yet used"] = _ask_forked(unused, words)
    found = ProcessAnswers(cls.version(), answers, forked, tuple(sorted(set(network))))
    sys.stdout.write(json.dumps(asdict(found)))


def _refuse(event: str, network: list[str]) -> None:
    if event.startswith("socket.") and event != "socket.gethostname":
        network.append(event)
        raise OSError(f"no network in this test: {event}")


def _ask(language: Language, words: Sequence[str]) -> dict[str, str | None]:
    return {word: language.canonical(word) for word in words}


def _ask_forked(language: Language, words: Sequence[str]) -> Answers:
    """Return the results of a forked child; none if it dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer_and_exit(language, words, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answers: dict[str, Any] = json.loads(text or "{}")
    return answers


def _answer_and_exit(language: Language, words: Sequence[str], writing: int) -> NoReturn:
    # The alarm ends a child that waits for a lock of a thread that was not forked.
    signal.alarm(_SECONDS // 3)
    try:
        answers = json.dumps(_ask(language, words))
        with os.fdopen(writing, "w") as pipe:
            pipe.write(answers)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
