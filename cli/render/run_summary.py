"""The end of a run over documents: what it did in lines for people, and its exit code."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shinglefold.cli.framework.command import DONE, FAILED, PARTLY, stopped_code
from shinglefold.cli.framework.output import printable, remark, times

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.contracts.engine import Engine
    from shinglefold.errors import Value
    from shinglefold.ingest import Summary
    from shinglefold.offline.sign.accounting import Signed

#: Reasons of failures that are told in lines.
_REASONS = 5
#: Said where sources hold none.
NO_DOCUMENTS = (
    "no documents found; check the sources, or say their --format (of folders, only HTML and text are read)"
)


def exit_code(summary: "Summary") -> int:
    """Return the exit code of a run that indexed; why it is none of the good ones goes to standard error."""
    if "discarded" in summary.counts:
        remark(f"{summary.index} is as it was: what was indexed for it is discarded")
    return ended(summary.stopped, summary.read, summary.failed, summary.indexed or summary.dropped)


def ended(stopped: str, read: int, failed: int, done: int, rest: str = "") -> int:
    """Return the exit code of a run over documents; why it is none of the good ones goes to standard error.

    Args:
        stopped: why it ended early, empty where it did not.
        failed: documents, of those read; ``done``: those with which all went well.
        rest: what is said of the documents that a run which ended early has left.
    """
    if stopped:
        remark(printable(f"stopped: {stopped.rstrip('.') if rest else stopped}{rest}"))
        return stopped_code(stopped)
    if not read:
        remark(NO_DOCUMENTS)
        return FAILED
    if failed:
        return PARTLY if done else FAILED
    return DONE


def run_lines(summary: "Summary | Signed", here: int, stages: str = "") -> Iterator[str]:
    """Yield how long a run took, what it was made with, what was counted, and why documents failed.

    Args:
        here: documents that this run has read itself.
        stages: what else is told of the time.
    """
    total = summary.seconds.get("total", 0.0)
    yield f"{total:.1f} s, {here / total if total else 0:,.0f} documents/s{stages}"
    languages = [f"{code} {count:,}" for code, count in sorted(summary.languages.items())]
    yield f"scheme {summary.scheme}; languages: {', '.join(languages) or 'none'}"
    yield from (
        f"{name.replace('_', ' ')}: {count:,}" for name, count in sorted(summary.counts.items()) if count
    )
    first = {one.reason: f"; first: {one.source}:{one.line}" for one in summary.failures}
    reasons = sorted(summary.reasons.items(), key=lambda item: -item[1])
    for reason, count in reasons[:_REASONS]:
        yield f"failed {times(count)}: {printable(reason + first.get(reason, ''))}"
    if others := reasons[_REASONS:]:
        why = "1 other reason" if len(others) == 1 else f"{len(others):,} other reasons"
        yield f"failed {times(sum(count for _, count in others))} for {why}; --json lists all"


def summary_lines(summary: "Summary", hints: "Hints", retried: str = "") -> list[str]:
    """Return what a run that indexed did as lines for people.

    Args:
        retried: the command that indexes again what failed, where it needs more options.
    """
    # What shows as 0.0 says nothing, and a short run would be a line of it.
    took = [(name, f"{value:.1f}") for name, value in summary.seconds.items() if name != "total"]
    stages = ", ".join(f"{name} {told}" for name, told in took if told != "0.0")
    lines = [
        f"{summary.indexed:,} indexed into {summary.index}, {summary.dropped:,} dropped, "
        f"{summary.failed:,} failed, of {summary.read:,} read",
        *run_lines(summary, summary.read, f" (seconds: {stages})" if stages else ""),
    ]
    lines += [f"note: {printable(note)}" for note in summary.notes]
    if summary.failed and summary.dead_letters:
        again = retried or hints.command("index", summary.dead_letters, index=summary.index, replay=True)
        some = "some of the failed" if summary.counts.get("not_kept") else "failed ones"
        lines.append(f"{some} are kept; once mended: {again}")
    if summary.counts.get("not_kept"):
        lines.append("those not kept are in no file of dead letters: once mended, index the sources again")
    if summary.made and not summary.indexed:
        remove = hints.command("delete", summary.index, yes=True)
        lines.append(f"it was made by this run and is empty; this removes it: {remove}")
    return lines


def replay_command(asked: "Asked", letters: str) -> str:
    """Return the command that indexes the documents of a dead-letter file again."""
    return asked.hints.command("index", letters, index=asked.index, replay=True)


def again_command(asked: "Asked", engine: "Engine", summary: "Summary", **made_by: "Value") -> str:
    """Return the command that tries the documents again which failed.

    Args:
        made_by: the options that decide what a new index is like: no recipe tells them where none was made.
    """
    from shinglefold.errors import EngineError

    letters, index = summary.dead_letters, asked.index
    try:
        there = bool(summary.indexed) or engine.index_exists(index)
    except EngineError:
        there = True
    if there:
        return replay_command(asked, letters)
    return asked.hints.command("index", letters, index=index, replay=True, **made_by)
