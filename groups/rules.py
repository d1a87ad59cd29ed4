"""By which rules the groups of an index are made: noted in its recipe, so that all who number agree."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from shinglefold.contracts import Engine
from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.recipe import META_KEY, Recipe, stored_recipe

Measure = Literal["resemblance", "containment"]


@dataclass(frozen=True, slots=True)
class Rules:
    """When two documents are alike; what is None is as in the scheme. See ``Policy``."""

    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    across_languages: bool = False

    @classmethod
    def of(cls, recipe: Recipe) -> "Rules":
        """Return the rules that an index notes.

        Raises:
            ConfigError: what it notes is none.
        """
        noted = recipe.grouping
        least, ratio = (_share(noted, name) for name in ("min_resemblance", "min_length_ratio"))
        scope = noted.get("scope", ())
        if not (isinstance(scope, list | tuple) and all(isinstance(name, str) for name in scope)):
            raise ConfigError(f"the recipe notes groups within {quoted(scope)}: expected names of fields")
        return cls(least, ratio, scope=tuple(scope), across_languages=noted.get("across_languages") is True)

    def or_noted(self, recipe: Recipe) -> "Rules":
        """Return these rules, with what an index notes in the place of what they don't say."""
        noted = Rules.of(recipe)
        return replace(
            self,
            min_resemblance=noted.min_resemblance if self.min_resemblance is None else self.min_resemblance,
            min_length_ratio=(
                noted.min_length_ratio if self.min_length_ratio is None else self.min_length_ratio
            ),
            scope=self.scope or noted.scope,
            across_languages=self.across_languages or noted.across_languages,
        )

    def to_json(self) -> dict[str, Any]:
        """Return what an index notes of them: what is not as in the scheme."""
        told: dict[str, Any] = {
            "min_resemblance": self.min_resemblance,
            "min_length_ratio": self.min_length_ratio,
            "scope": list(self.scope),
            "across_languages": self.across_languages,
        }
        return {name: value for name, value in told.items() if value not in (None, [], False)}


def note(engine: Engine, index: str, rules: Rules, linkage: str) -> None:
    """Note in the recipes of all indices behind a name by which rules their groups are made.

    Raises:
        EngineError: the engine refuses it.
    """
    told = rules.to_json() | ({} if linkage == "leader" else {"linkage": linkage})
    for name, mappings in sorted(engine.all_mappings(index).items()):
        stored = stored_recipe(mappings)
        if stored is None or stored.get("grouping", {}) == told:
            continue
        rest = {key: value for key, value in stored.items() if key != "grouping"}
        meta = {**mappings["_meta"], META_KEY: rest | ({"grouping": told} if told else {})}
        engine.put_mappings(name, {"_meta": meta})


def _share(noted: Mapping[str, Any], name: str) -> float | None:
    value = noted.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(
            f"the recipe notes groups with {name} {quoted(value)}: expected a share from 0 to 1"
        )
    return float(value)
