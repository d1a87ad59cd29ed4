"""The rules by which documents match, and the policy of a gate.

The rules of an index's groups are noted in its recipe, so that all runs agree.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, quote
from shinglefold.model.linkage import Linkage, linkage_note
from shinglefold.model.recipe import META_KEY, Recipe, stored_recipe
from shinglefold.model.scheme import Decision, Scheme, Verify, verified_by
from shinglefold.options.validation import (
    check_choice,
    check_fraction,
    check_int,
    check_number,
    check_strings,
)

Measure = Literal["resemblance", "containment"]
#: The limit of scope fields.
MOST_SCOPES = 1_000


@dataclass(frozen=True, slots=True)
class Rules:
    """When two documents match; None follows the scheme. ``Policy`` explains the attributes."""

    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    verify: Verify | None = None
    min_similarity: float | None = None

    @classmethod
    def of_options(cls, options: object) -> "Rules":
        """Return the rules among options, which have the same names."""
        names = (one.name for one in fields(cls))
        return cls(**{name: getattr(options, name) for name in names if hasattr(options, name)})

    def check(self) -> Verify:
        """Check the values, and return what decides by them alone."""
        check_choice("measure", self.measure, get_args(Measure))
        # A single string would count as a list of letters.
        check_strings("scope", self.scope, MOST_SCOPES)
        check_fraction("min_length_ratio", self.min_length_ratio)
        check_fraction("min_similarity", self.min_similarity)
        if self.verify is not None:
            check_choice("way to verify", self.verify, get_args(Verify))
        if self.measure == "containment" and (self.verify or "signature") != "signature":
            raise ConfigError(
                "containment is decided by signatures alone: leave verify out, or set it to signature"
            )
        return verified_by(Decision(), self.verify, self.min_resemblance, self.min_similarity)

    @classmethod
    def of(cls, recipe: Recipe) -> "Rules":
        """Return the rules that an index stores."""
        noted = recipe.grouping
        scope, verify = noted.get("scope", ()), noted.get("verify")
        if not (isinstance(scope, list | tuple) and all(isinstance(name, str) for name in scope)):
            raise ConfigError(f"the recipe notes groups within {quote(scope)}: expected names of fields")
        if not (verify is None or verify in get_args(Verify)):
            known = " or ".join(get_args(Verify))
            raise ConfigError(f"the recipe notes groups verified by {quote(verify)}: expected {known}")
        return cls(
            _share(noted, "min_resemblance"),
            _share(noted, "min_length_ratio"),
            scope=tuple(scope),
            verify=verify,
            min_similarity=_share(noted, "min_similarity"),
        )

    def or_noted(self, recipe: Recipe) -> "Rules":
        """Return these rules, completed by those that an index stores."""
        noted = Rules.of(recipe)
        return replace(
            self,
            min_resemblance=noted.min_resemblance if self.min_resemblance is None else self.min_resemblance,
            min_length_ratio=(
                noted.min_length_ratio if self.min_length_ratio is None else self.min_length_ratio
            ),
            scope=self.scope or noted.scope,
            **self._verification(noted),
        )

    def _verification(self, noted: "Rules") -> dict[str, Any]:
        """Return how pairs are verified; a threshold in these rules overrides all that is noted."""
        own = self.verify, self.min_resemblance, self.min_similarity
        source = self if own != (None, None, None) else noted
        # A given threshold of texts overrides a noted one of signatures.
        by_text = source.verify is None and source.min_similarity is not None and self.min_resemblance is None
        return {"verify": "text" if by_text else source.verify, "min_similarity": source.min_similarity}

    def apply_to(self, scheme: Scheme) -> Scheme:
        """Return a scheme with the similarity that texts must reach under these rules; see ``thresholds``."""
        if self.min_similarity is None:
            return scheme
        verify = self.verified_by(scheme.decision)
        return scheme.with_options(verify=verify, min_similarity=self.min_similarity)

    def verified_by(self, decision: Decision) -> Verify:
        """Return what decides under a scheme's decision: signatures alone for containment."""
        if self.measure == "containment":
            return "signature"
        return verified_by(decision, self.verify, self.min_resemblance, self.min_similarity)

    def to_json(self) -> dict[str, Any]:
        """Return the rules as an index stores them: those that differ from the scheme."""
        rules = {**asdict(self), "scope": list(self.scope)}
        del rules["measure"]
        return {name: value for name, value in rules.items() if value not in (None, [], False)}


def note(engine: Engine, index: str, rules: Rules, linkage: Linkage) -> None:
    """Note rules in the recipes of all indices of a name."""
    noted = rules.to_json() | linkage_note(linkage)
    for name, mappings in sorted(engine.all_mappings(index).items()):
        stored = stored_recipe(mappings)
        if stored is None or stored.get("grouping", {}) == noted:
            continue
        rest = {key: value for key, value in stored.items() if key != "grouping"}
        meta = {**mappings["_meta"], META_KEY: rest | ({"grouping": noted} if noted else {})}
        engine.put_mappings(name, {"_meta": meta})


def _share(noted: Mapping[str, Any], name: str) -> float | None:
    value = noted.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"the recipe notes groups with {name} {quote(value)}: expected a share from 0 to 1")
    return float(value)


#: What the gate does with a document that resembles a stored one.
PolicyAction = Literal["refuse", "tag", "cap"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a gate.

    Attributes:
        action: ``refuse`` a document that resembles a stored one; ``tag``: store it with the number of its
            group; ``cap``: store it while its group has fewer than ``most`` documents.
        most: documents of a group under ``cap``.
        min_resemblance: the least resemblance of documents that match, above 0 to 1; by default the scheme's.
        min_length_ratio: as in the scheme; by default the scheme's.
        measure: ``containment`` compares with the shorter text alone, so that a text that holds another
            matches it; lengths then do not matter.
        scope: fields (host, language, collection …) whose values must be equal for documents to match.
        min_characters, max_characters: limits of the text; None sets no limit.
        verify: what decides about documents that share a supershingle. ``keywords``: they match.
            ``signature``: the estimate decides. ``text``: the texts decide uncertain pairs. None follows a
            threshold given here, then the rules that the index stores for groups, then the scheme.
        min_similarity: the edit similarity that texts must reach.
    """

    action: PolicyAction = "refuse"
    most: int = 1
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    measure: Measure = "resemblance"
    scope: tuple[str, ...] = ()
    min_characters: int | None = None
    max_characters: int | None = None
    verify: Verify | None = None
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        check_choice("policy", self.action, get_args(PolicyAction))
        check_int("most (documents of a group)", self.most, 1, 10_000)
        check_number("min_resemblance", self.min_resemblance, 0, 1, above=True, optional=True)
        self.rules.check()
        self._check_lengths()

    def _check_lengths(self) -> None:
        low, high = self.min_characters, self.max_characters
        check_int("min_characters", low, optional=True)
        check_int("max_characters", high, optional=True)
        if low is not None and high is not None and low > high:
            raise ConfigError(f"min_characters {low} is above max_characters {high}: no text fits")

    @property
    def rules(self) -> Rules:
        """The rules by which documents match, without those of the gate alone."""
        return Rules.of_options(self)

    def misfit(self, characters: int) -> str:
        """Return why a text of this length is refused; "" if it fits."""
        if self.min_characters is not None and characters < self.min_characters:
            return f"its text has {characters:,} characters, at least {self.min_characters:,} are wanted"
        if self.max_characters is not None and characters > self.max_characters:
            return f"its text has {characters:,} characters, at most {self.max_characters:,} are wanted"
        return ""
