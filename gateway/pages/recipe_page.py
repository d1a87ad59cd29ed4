"""The page of the index: its recipe, how many documents are signed, and on request what the doctor finds."""

from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import chain, suggest
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.maintenance import Diagnosis
from shinglefold.maintenance.statistics import IndexStatistics, statistics

PARAMETERS = ("examine",)
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
    if found.healthy or found.obstacles or found.misread or found.findings.get("textless"):
        return ""
    commands = [suggest("setup", name)] if found.mapping else []
    if any(found.findings.get(finding) for finding in _BACKFILLED):
        commands.append(suggest("backfill", name))
    if found.ungrouped:
        commands.append(suggest("regroup", name))
    return chain(commands)
