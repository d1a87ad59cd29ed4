"""The page of the adviser: which preset finds the wanted pairs, and with which probability."""

from typing import Any

from shinglefold.errors import ConfigError, chain, suggest
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.sketch.layout_advice import (
    Advice,
    Requirements,
    appraise,
    choose_layout,
    preset_widths,
    resemblance_after,
)

PARAMETERS = ("resemblance", "changed", "of", "width", "miss", "documents", "near_share", "strangers")
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
