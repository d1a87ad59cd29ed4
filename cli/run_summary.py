"""The end of a run that indexed documents: what it did in lines for people, and its exit code."""

from typing import TYPE_CHECKING

from shinglefold.cli.command import DONE, FAILED, PARTLY, stopped_code
from shinglefold.cli.output import printable, remark, times

if TYPE_CHECKING:
    from shinglefold.cli.hints import Hints
    from shinglefold.ingest import Summary


def exit_code(summary: "Summary") -> int:
    """Return the exit code of a run; why it is none of the good ones goes to standard error."""
    if "discarded" in summary.counts:
        remark(f"{summary.index} is as it was: what was indexed for it is discarded")
    if summary.stopped:
        remark(f"stopped: {printable(summary.stopped)}")
        return stopped_code(summary.stopped)
    if not summary.read:
        remark("no documents found; check the sources, or say their --format")
        return FAILED
    if summary.failed:
        return PARTLY if summary.indexed or summary.dropped else FAILED
    return DONE


def summary_lines(summary: "Summary", hints: "Hints") -> list[str]:
    """Return what a run did as lines for people."""
    total = summary.seconds.get("total", 0.0)
    speed = summary.read / total if total else 0.0
    stages = [f"{name} {value:.1f}" for name, value in summary.seconds.items() if name != "total"]
    languages = [f"{code} {count:,}" for code, count in sorted(summary.languages.items())]
    lines = [
        f"{summary.indexed:,} indexed into {summary.index}, {summary.dropped:,} dropped, "
        f"{summary.failed:,} failed, of {summary.read:,} read",
        f"{total:.1f} s, {speed:,.0f} documents/s (seconds: {', '.join(stages)})",
        f"scheme {summary.scheme}; languages: {', '.join(languages) or 'none'}",
    ]
    counts = sorted(summary.counts.items())
    lines += [f"{name.replace('_', ' ')}: {count:,}" for name, count in counts if count]
    first = {one.reason: f"; first: {one.source}:{one.line}" for one in summary.failures}
    lines += [
        f"failed {times(count)}: {printable(reason + first.get(reason, ''))}"
        for reason, count in sorted(summary.reasons.items(), key=lambda item: -item[1])[:5]
    ]
    lines += [f"note: {printable(note)}" for note in summary.notes]
    if summary.failed and summary.dead_letters:
        again = hints.command("retry", summary.dead_letters, index=summary.index)
        some = "some of the failed" if summary.counts.get("not_kept") else "failed ones"
        lines.append(f"{some} are kept; once mended: {again}")
    if summary.counts.get("not_kept"):
        lines.append("those not kept are in no file of dead letters: once mended, index the sources again")
    if summary.made and not summary.indexed:
        remove = hints.command("delete", summary.index, yes=True)
        lines.append(f"it was made by this run and is empty; this removes it: {remove}")
    return lines
