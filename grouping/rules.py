"""The rules by which groups of an index are made, noted in its recipe so that all runs agree."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, quote
from shinglefold.model.recipe import META_KEY, Recipe, stored_recipe
from shinglefold.model.scheme import Decision, Scheme, Verify, verified_by

Measure = Literal["resemblance", "containment"]
#: Fields that groups are made within, at most.
MOST_SCOPES = 1_000


@dataclass(frozen=True, slots=True)
class Rules:
    """When two documents are alike; None follows the scheme. See ``Policy``."""

    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    across_languages: bool = False
    verify: Verify | None = None
    min_similarity: float | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> "Rules":
        """Return the rules that an index notes.

        Raises:
            ConfigError: the notes are invalid.
        """
        noted = recipe.grouping
        shares = ("min_resemblance", "min_length_ratio", "min_similarity")
        least, ratio, similarity = (_share(noted, name) for name in shares)
        scope = noted.get("scope", ())
        if not (isinstance(scope, list | tuple) and all(isinstance(name, str) for name in scope)):
            raise ConfigError(f"the recipe notes groups within {quote(scope)}: expected names of fields")
        across = noted.get("across_languages") is True
        verify = noted.get("verify")
        if not (verify is None or verify in get_args(Verify)):
            known = " or ".join(get_args(Verify))
            raise ConfigError(f"the recipe notes groups verified by {quote(verify)}: expected {known}")
        return cls(
            least,
            ratio,
            scope=tuple(scope),
            across_languages=across,
            verify=verify,
            min_similarity=similarity,
        )

    def or_noted(self, recipe: Recipe) -> "Rules":
        """Return these rules, completed by those that an index notes."""
        noted = Rules.of(recipe)
        return replace(
            self,
            min_resemblance=noted.min_resemblance if self.min_resemblance is None else self.min_resemblance,
            min_length_ratio=(
                noted.min_length_ratio if self.min_length_ratio is None else self.min_length_ratio
            ),
            scope=self.scope or noted.scope,
            across_languages=self.across_languages or noted.across_languages,
            **self._deciding(noted),
        )

    def _deciding(self, noted: "Rules") -> dict[str, Any]:
        """Return what decides; a threshold in these rules overrides all that is noted."""
        own = self.verify, self.min_resemblance, self.min_similarity
        said = self if own != (None, None, None) else noted
        # A given threshold of texts overrides a noted one of signatures.
        by_text = said.verify is None and said.min_similarity is not None and self.min_resemblance is None
        return {"verify": "text" if by_text else said.verify, "min_similarity": said.min_similarity}

    def judged(self, scheme: Scheme) -> Scheme:
        """Return a scheme with the similarity that texts must reach."""
        if self.min_similarity is None:
            return scheme
        return replace(scheme, decision=replace(scheme.decision, min_similarity=self.min_similarity))

    def verified_by(self, decision: Decision) -> Verify:
        """Return what decides under a scheme's decision: signatures alone for containment."""
        if self.measure == "containment":
            return "signature"
        return verified_by(decision, self.verify, self.min_resemblance, self.min_similarity)

    def to_json(self) -> dict[str, Any]:
        """Return the rules as an index notes them: those that differ from the scheme."""
        told: dict[str, Any] = {
            "min_resemblance": self.min_resemblance,
            "min_length_ratio": self.min_length_ratio,
            "scope": list(self.scope),
            "across_languages": self.across_languages,
            "verify": self.verify,
            "min_similarity": self.min_similarity,
        }
        return {name: value for name, value in told.items() if value not in (None, [], False)}


def note(engine: Engine, index: str, rules: Rules, linkage: str) -> None:
    """Note rules in the recipes of all indices of a name.

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
        raise ConfigError(f"the recipe notes groups with {name} {quote(value)}: expected a share from 0 to 1")
    return float(value)
