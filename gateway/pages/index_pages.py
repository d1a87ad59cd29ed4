"""The pages of an index as a whole: its groups, its recipe, and the preset that would suit it."""

from dataclasses import replace
from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import ConfigError, chain, suggest
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.grouping.report import GroupReport, ReportFields, make_report
from shinglefold.maintenance import Diagnosis
from shinglefold.maintenance.statistics import IndexStatistics, statistics
from shinglefold.rerank.index_fields import check_fields
from shinglefold.sketch.layout_advice import (
    Advice,
    Requirements,
    appraise,
    choose_layout,
    preset_widths,
    resemblance_after,
)

GROUPS_PARAMETERS = ("host_field", "date_field", "title_field", "most")
_MOST, _LIMIT = 10, 100


def groups_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return a report of the groups.

    Cost: a scan of all documents that reads a few fields, at most once a minute for the same fields.
    """
    index, usual = shared.index, ReportFields()
    names = ReportFields(
        given.word("host_field"), given.word("date_field"), given.word("title_field", usual.title)
    )
    most = given.count("most", _MOST, 1, _LIMIT)
    # The default fields may be missing.
    named = sorted({names.host, names.date, names.title} - {"", usual.title})
    if named:
        check_fields(index.engine.all_mappings(index.name).values(), index.name, named, "groups")
    whole: GroupReport = shared.once(
        ("groups", names), lambda: make_report(index.engine, index.name, names, listed=_LIMIT)
    )
    made = _with_most(whole, most)
    return {
        "fields": {"host": names.host, "date": names.date, "title": names.title},
        "most": most,
        "report": made.to_json(),
        "in_shared": made.in_shared,
    }


def _with_most(whole: GroupReport, most: int) -> GroupReport:
    """Return a report with fewer groups, hosts and languages."""
    left_out = {kind: max(0, len(getattr(whole, kind)) - most) for kind in ("hosts", "languages")}
    return replace(
        whole,
        largest=whole.largest[:most],
        newest=whole.newest[:most],
        hosts=whole.hosts[:most],
        languages=whole.languages[:most],
        more={kind: count + left_out.get(kind, 0) for kind, count in whole.more.items()},
    )


RECIPE_PARAMETERS = ("examine",)
#: Findings that a backfill mends.
_BACKFILLED = ("without_fingerprint", "other_scheme", "stale", "other_facts", "damaged", "unsealed")


def recipe_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return the recipe and the statistics of an index, and a diagnosis if ``examine`` is set.

    Cost: some counts; with ``examine`` a scan of all documents, whose texts are read, at most once a minute.
    """
    index = shared.index
    found = statistics(index.engine, index.name)
    diagnosis = None
    if given.flag("examine"):
        made: Diagnosis = shared.once("doctor", index.doctor)
        diagnosis = {**made.to_json(), "commands": shared.complete(_remedies(index.name, made))}
    return {
        "indices": [_statistics_json(one, shared) for one in found],
        "recipe": _recipe(index),
        "diagnosis": diagnosis,
        "doctor": shared.complete(suggest("doctor", index.name)),
    }


def _statistics_json(one: IndexStatistics, shared: Shared) -> dict[str, Any]:
    backfill = suggest("backfill", one.info.name)
    return {
        **{name: value for name, value in one.to_json().items() if name != "recipe"},
        "size": one.info.size,
        "languages": one.languages,
        "without_fingerprint": one.without_fingerprint if one.recipe else None,
        "too_short": max(0, one.fingerprints - one.signed),
        "problem": shared.complete(one.problem),
        "command": shared.complete(backfill) if one.recipe and one.without_fingerprint > 0 else "",
    }


def _recipe(index: FoldedIndex) -> dict[str, Any]:
    recipe = index.recipe
    sketch, decision = recipe.scheme.sketch, recipe.scheme.decision
    return {
        "scheme": recipe.scheme.id,
        "preset": recipe.scheme.name,
        "supershingles": sketch.groups,
        "group_size": sketch.group_size,
        "values": sketch.values,
        "bits": sketch.bits,
        "min_resemblance": decision.min_resemblance,
        "fields": list(recipe.fields),
        "fingerprint_field": recipe.field,
        "languages": {ref.code: ref.version for ref in recipe.scheme.languages},
        "never_differ": list(recipe.never_differ),
        "profile": recipe.profile,
        "groups": recipe.groups,
        "sealed": bool(recipe.sealed),
        "processors": [next(iter(step)) for step in recipe.pipeline.get("processors", ()) if step],
        "product": recipe.product,
    }


def _remedies(name: str, found: Diagnosis) -> str:
    """Return the commands that correct the findings; "" if there are none, or commands would not help."""
    other_fields = found.misread or found.findings.get("textless")
    if found.healthy or found.obstacles or other_fields:
        return ""
    commands = [suggest("setup", name)] if found.mapping else []
    if any(found.findings.get(finding) for finding in _BACKFILLED):
        commands.append(suggest("backfill", name))
    if found.ungrouped:
        commands.append(suggest("regroup", name))
    return chain(commands)


ADVISER_PARAMETERS = ("resemblance", "changed", "of", "width", "miss", "documents", "near_share", "strangers")
_STEPS = 50
_MOST_DOCUMENTS = 10**12


def adviser_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return the preset that meets requirements, and the probability that it and the index find pairs."""
    usual = Requirements()
    widths = preset_widths()
    width = given.count("width", widths[0] if 2 not in widths else 2, 1, 10)
    if width not in widths:
        raise ConfigError(f"width={width}: the presets have shingles of {', '.join(map(str, widths))} words")
    changed, of = given.count("changed", 0, 0, 10**6), given.count("of", 0, 0, 10**6)
    if bool(changed) != bool(of) or (of and changed >= of):
        raise ConfigError(
            f"changed={changed} of={of}: give the words replaced, and a greater number of words"
        )
    wanted = given.number("resemblance", usual.resemblance, 0.0, 1.0)
    needs = Requirements(
        resemblance=resemblance_after(changed / of, width) if of else wanted,
        miss=given.number("miss", usual.miss, 0.0, 1.0),
        documents=given.count("documents", usual.documents, 2, _MOST_DOCUMENTS),
        near_share=given.number("near_share", usual.near_share, 0.0, 1.0),
        strangers=given.number("strangers", usual.strangers, 0.0, 1e12),
    )
    found = choose_layout(needs, width)
    scheme = shared.index.scheme
    own = appraise(needs, scheme.sketch, max(1, scheme.decision.min_shared))
    advised = None
    if found.layout is not None:
        preset, advice = found.layout
        advised = {"preset": preset, **_figures(advice), "curve": _curve(advice)}
        advised["is_of_index"] = preset == scheme.name
        advised["commands"] = (
            "" if preset == scheme.name else shared.complete(_commands(shared.index.name, preset))
        )
    return {
        "needs": {
            "resemblance": round(needs.resemblance, 4),
            "changed": changed or None,
            "of": of or None,
            "width": width,
            "miss": needs.miss,
            "documents": needs.documents,
            "near_share": needs.near_share,
            "strangers": needs.strangers,
        },
        "advised": advised,
        "relaxed": {"strangers": found.strangers, "miss": found.miss},
        "own": {"preset": scheme.name, **_figures(own), "curve": _curve(own)},
    }


def _commands(index: str, preset: str) -> str:
    return chain([suggest("setup", index, preset=preset), suggest("backfill", index)])


def _curve(advice: Advice) -> list[dict[str, float]]:
    return [
        {"resemblance": round(x, 3), "found": round(y, 6)}
        for x, y in zip(*(column.tolist() for column in advice.curve(_STEPS)), strict=True)
    ]


def _figures(advice: Advice) -> dict[str, float]:
    return {
        "groups": advice.groups,
        "group_size": advice.group_size,
        "min_shared": advice.min_shared,
        "values": advice.values,
        "bits": advice.bits,
        "threshold": round(advice.threshold, 3),
        "found": round(advice.found, 4),
        "strangers": float(f"{advice.strangers:.4g}"),
        "false_folds": float(f"{advice.false_folds:.3g}"),
        "bytes": advice.bytes,
    }
