"""What a gate is opened with: the index made ready for it, and how its documents are compared and stored."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, GuardedWrites, Parameters
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.errors import ConfigError, EngineError
from shinglefold.groups.candidate_search import Lookup
from shinglefold.groups.deciding import likeness_of
from shinglefold.groups.gate.fingerprint_judge import Fingerprints
from shinglefold.groups.gate.mapped import check_keeps, check_shown, concrete_index, has, nested
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.intent_register import Alone, Shared
from shinglefold.groups.gate.protocol.placeholders import GROUP, LEADER, Forms
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.groups.gate.stores.server import Documents
from shinglefold.groups.intent_index import check_intents, ensure_intents
from shinglefold.groups.scope_values import Values
from shinglefold.groups.similarity import Likeness, Rules
from shinglefold.ingest import Backoff
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal, check_seal, check_sealed
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING
from shinglefold.options.remedies import chain, suggest
from shinglefold.options.validation import check_engine, check_number, check_str
from shinglefold.rerank.request.recipe_check import check_keywords

#: The parts of a placeholder; by the first a sweep finds it.
_PLACEHOLDER: JSON = {
    PENDING: {"type": "long"},
    ATTEMPT: {"type": "keyword", "index": False, "doc_values": False},
}


@dataclass(frozen=True, slots=True)
class Opened:
    """An index with a gate before it.

    ``intents``: the index of intents, empty where one process at a time writes and needs none. ``read_back``:
    the fields of documents that a decision reads again. ``first``: the order in which leaders come first.
    ``beside``: fields of found documents that tell who decides. ``identities``: of both indices, which
    another index of their name has not. ``named``: by which name it was opened, an alias perhaps.
    """

    index: str
    intents: str
    recipe: Recipe
    likeness: Likeness
    forms: Forms
    terms: Terms
    read_back: tuple[str, ...]
    first: tuple[JSON, ...]
    beside: tuple[str, ...]
    identities: Mapping[str, str]
    named: str

    @property
    def names(self) -> tuple[str, ...]:
        """The indices that a gate writes to, and the name it was opened by."""
        return tuple(name for name in dict.fromkeys((self.index, self.intents, self.named)) if name)

    def check_same(self, identities: Mapping[str, str]) -> None:
        """Refuse to go on where an index was deleted meanwhile: a server makes another for what comes.

        Nor where the alias means other indices, as after a rollover: new documents belong there.

        Args:
            identities: of all indices that ``names`` mean.

        Raises:
            EngineError: it is another, or gone.
        """
        others = [name for name, now in identities.items() if now and name not in self.identities]
        if others and any(self.identities.values()):
            raise EngineError(
                f"{self.named!r} meant the index {self.index!r} when this gate was opened, and now means "
                f"{', '.join(sorted(others))}, as after a rollover: open another gate before the index that "
                "takes new documents"
            )
        for name, known in self.identities.items():
            now = identities.get(name, "gone")
            if known and now and now != known:
                other = "" if now == "gone" else ", and there is another of its name"
                if name == self.intents:
                    raise EngineError(
                        f"index {name!r}, where gates keep their notes, was deleted while one stood before "
                        f"{self.index!r}{other}: leave it to the gates. What was let in is there; open "
                        "another gate"
                    )
                raise EngineError(
                    f"index {name!r} was deleted while a gate stood before it{other}: what was let in is "
                    f"gone with it. Set {self.index!r} up again where it is gone, and open another gate"
                )

    def documents(self, engine: Engine | AsyncEngine, parameters: Parameters | None) -> Documents:
        """Return the searches of the index, by an engine that is blocking or awaited."""
        lookup = Lookup(
            engine, self.index, self.likeness, beside=self.beside, first=self.first, parameters=parameters
        )
        return Documents(lookup, self.forms, self.recipe.groups, self.terms.policy.action == "cap")

    @property
    def shared(self) -> Shared | None:
        """What it tells other gates; None where there are none."""
        register = self.terms.register
        return register if isinstance(register, Shared) else None


def open_gate(  # noqa: PLR0917 - as gates are opened
    engine: Engine,
    index: str,
    policy: Policy,
    seal: Seal | None,
    lease: float,
    canonicalizer: Canonicalizer | None = None,
) -> Opened:
    """Make an index ready for a gate.

    Args:
        canonicalizer: of the index's scheme, for texts that decide; None makes one when it is first wanted.

    Raises:
        ConfigError: the index was not set up for it, or the engine can't do it.
    """
    check_engine(engine)
    check_str("index", index)
    check_seal(seal)
    check_number("lease (seconds)", lease, above=True)
    concrete = concrete_index(engine, index)
    mappings = engine.mappings(concrete)
    recipe = Recipe.of(mappings, index)
    check_sealed(recipe.sealed, seal, f"index {index!r}")
    check_keywords(mappings, index, recipe.field)
    _check_groups(recipe, index, policy)
    likeness = _likeness(recipe, policy, seal, canonicalizer, mappings, index)
    scopes = [likeness.told_in(scope) for scope in likeness.scopes]
    parts = [f"{recipe.field}.{part}" for part in (*likeness.parts, GROUP, LEADER, PENDING, ATTEMPT)]
    check_shown(mappings, index, [*parts, *scopes])
    check_keeps(engine, mappings, concrete)
    intents, identities = "", dict[str, str]()
    if isinstance(engine, GuardedWrites):
        if not has(mappings, recipe.field, _PLACEHOLDER):
            engine.put_mappings(concrete, nested(recipe.field, _PLACEHOLDER))
        intents = ensure_intents(engine, concrete)
        check_intents(engine, intents)
        identities = engine.identities([concrete, intents])
    elif not isinstance(engine, ExclusiveWrites):
        raise ConfigError("this engine has neither guarded nor exclusive writes, which a gate needs")
    milliseconds = round(lease * 1000)
    forms = Forms(recipe.field)
    terms = Terms(
        policy,
        Fingerprints(likeness),
        forms,
        _attempt,
        Shared(_attempt, milliseconds) if intents else Alone(),
        groups=recipe.groups,
        lease=milliseconds,
        # What one process writes to alone does not come back by itself.
        again=Backoff() if intents else Backoff(retries=0),
    )
    read_back = (*parts, *scopes, *likeness.texts)
    leader, group = (f"{recipe.field}.{part}" for part in (LEADER, GROUP))
    first: tuple[JSON, ...] = ({leader: {"order": "desc", "missing": "_last"}},) if recipe.groups else ()
    if policy.action == "cap":
        first = (*first, {group: {"order": "asc", "missing": "_first"}})
    beside: tuple[str, ...] = {"refuse": (), "tag": (leader,), "cap": (leader, group)}[policy.action]
    return Opened(
        concrete, intents, recipe, likeness, forms, terms, read_back, first, beside, identities, index
    )


def _likeness(  # noqa: PLR0917 - as ``open_gate``
    recipe: Recipe,
    policy: Policy,
    seal: Seal | None,
    canonicalizer: Canonicalizer | None,
    mappings: JSON,
    index: str,
) -> Likeness:
    own = _rules(policy)
    rules = own.or_noted(recipe)
    if policy.action == "refuse":
        # What the index notes is how groups are made, and there are none of them in this.
        rules = replace(rules, verify=own.verify, min_similarity=own.min_similarity)
    values = Values.of(mappings, rules.scope, index)
    return likeness_of(recipe, rules, seal, values, canonicalizer, facts=policy.facts)


def _rules(policy: Policy) -> Rules:
    return Rules(
        policy.min_resemblance,
        policy.min_length_ratio,
        policy.measure,
        policy.scope,
        policy.across_languages,
        policy.verify,
        policy.min_similarity,
    )


def _check_groups(recipe: Recipe, index: str, policy: Policy) -> None:
    if policy.action != "refuse" and not recipe.groups:
        raise ConfigError(
            f"index {index!r} numbers no groups, which the policy {policy.action!r} needs: "
            f"{chain([suggest('setup', index, groups=True), suggest('regroup', index)])}"
        )


def _attempt() -> str:
    return f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"
