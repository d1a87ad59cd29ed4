"""Open a gate: check and prepare the index, and derive how its documents are compared and stored."""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, GuardedWrites, Parameters
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.errors import (
    ConfigError,
    EngineError,
    RecipeMismatch,
    SchemeMismatch,
    chain,
    suggest,
)
from shinglefold.grouping.candidate_search import CandidateLookup, StoredDocuments
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.gate.protocol.decide import DecisionContext, DocumentJudge
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.intents import NullRegister
from shinglefold.grouping.gate.protocol.pending_document import GROUP, LEADER, GateFields
from shinglefold.grouping.intent_index import check_intents, ensure_intents
from shinglefold.grouping.rules import Policy
from shinglefold.grouping.similarity import SimilarityModel, similarity_model
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import check_write_index, nest
from shinglefold.maintenance.preconditions import (
    change_obstacles,
    properties_at,
    settings_of,
    source_obstacles,
)
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal, check_seal, check_sealed
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING
from shinglefold.options.validation import check_engine, check_number, check_str, check_type
from shinglefold.rerank.index_fields import check_keywords
from shinglefold.rerank.similar import QueryDocument
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff


def match_keys_of(document: QueryDocument) -> tuple[str, ...]:
    """Return the supershingles and the text digest: two documents that match have one in common."""
    digest = document.print.digest
    return (*document.print.supershingles, *((f"#{digest}",) if digest else ()))


#: The mapping of a placeholder; a sweep searches the first field.
_PLACEHOLDER: JSON = {
    PENDING: {"type": "long"},
    ATTEMPT: {"type": "keyword", "index": False, "doc_values": False},
}


@dataclass(frozen=True, slots=True)
class GateSetup:
    """An index that is prepared for a gate.

    Attributes:
        intents: the index of intents, "" on an embedded engine, which needs none.
        read_back: the fields of documents that a decision reads again.
        pipelines: the server's own ingest pipelines of the index.
        identities: the identity of each index by name; a new index of the same name has another one.
        given_name: the name that the gate was opened by, perhaps an alias.
        routing: the routing that this alias gives to documents.
    """

    index: str
    intents: str
    recipe: Recipe
    model: SimilarityModel
    context: DecisionContext
    read_back: tuple[str, ...]
    identities: Mapping[str, str]
    given_name: str
    pipelines: tuple[str, ...] = ()
    routing: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The indices that the gate writes to, and the name that it was opened by."""
        return tuple(name for name in dict.fromkeys((self.index, self.intents, self.given_name)) if name)

    def check_same(self, identities: Mapping[str, str]) -> None:
        """Check that both indices still exist and that the alias still means this index.

        A server would create a deleted index again for the next write. After a rollover new documents belong
        to another index.

        Args:
            identities: the current identities of all indices that the names in ``names`` mean.

        Raises:
            EngineError: an index was replaced or deleted, or the alias moved.
        """
        others = [name for name, now in identities.items() if now and name not in self.identities]
        if others and any(self.identities.values()):
            raise EngineError(
                f"{self.given_name!r} meant the index {self.index!r} when this gate was opened, and now "
                f"means {', '.join(sorted(others))}, as after a rollover: open another gate for the index "
                "that takes new documents"
            )
        for name, identity in self.identities.items():
            now = identities.get(name, "gone")
            if identity and now and now != identity:
                other = "" if now == "gone" else ", and there is another of its name"
                if name == self.intents:
                    raise EngineError(
                        f"index {name!r}, where gates publish their intents, was deleted while a gate of "
                        f"{self.index!r} was open{other}. No document is lost; leave that index to gates, "
                        "and open another gate"
                    )
                raise EngineError(
                    f"index {name!r} was deleted while a gate was open{other}: its documents are gone. Set "
                    f"{self.index!r} up again where it is missing, and open another gate"
                )

    def check_recipe(self, mappings: Mapping[str, Any]) -> None:
        """Raise ``EngineError`` if the index has another recipe than when the gate was opened."""
        try:
            now = Recipe.of(mappings, self.index)
            now.check(self.recipe, self.index, f"Open another gate, after {suggest('backfill', self.index)}.")
        except (ConfigError, RecipeMismatch, SchemeMismatch) as error:
            raise EngineError(
                f"the recipe of {self.index!r} was changed while a gate was open, which made fingerprints of "
                f"the earlier one ({self.recipe.scheme.id}): {error}"
            ) from error

    def documents(self, engine: Engine | AsyncEngine, parameters: Parameters | None) -> StoredDocuments:
        """Return the searches of the index by an engine, blocking or awaited."""
        field, action = self.recipe.field, self.context.policy.action
        leader, group = f"{field}.{LEADER}", f"{field}.{GROUP}"
        # Leaders come first, and under ``cap`` documents without a number before those with one.
        sort: list[JSON] = [{leader: {"order": "desc", "missing": "_last"}}] if self.recipe.groups else []
        if action == "cap":
            sort.append({group: {"order": "asc", "missing": "_first"}})
        doc_values = {"refuse": (), "tag": (leader,), "cap": (leader, group)}[action]
        lookup = CandidateLookup(
            engine, self.index, self.model, doc_values=doc_values, sort=sort, parameters=parameters
        )
        return StoredDocuments(lookup, self.context.gate_fields, self.recipe.groups, action == "cap")

    @property
    def shared(self) -> SharedRegister | None:
        """The register that other gates read; None on an embedded engine."""
        register = self.context.register
        return register if isinstance(register, SharedRegister) else None


def open_gate(  # noqa: PLR0917 - as gates are opened
    engine: Engine,
    index: str,
    policy: Policy | None,
    pipeline: Pipeline | None,
    seal: Seal | None,
    lease: float,
) -> GateSetup:
    """Check and prepare an index for a gate.

    Raises:
        ConfigError: the index was not set up for gates, or the engine does not support them.
    """
    check_type("policy", policy, Policy, 'a Policy, such as Policy("refuse"), or None', optional=True)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…), or None", optional=True)
    check_engine(engine)
    check_str("index", index)
    check_seal(seal)
    check_number("lease (seconds)", lease, above=True)
    concrete = concrete_index(engine, index)
    routing = None if concrete == index else check_write_index(engine, index)
    mappings = engine.mappings(concrete)
    recipe = Recipe.of(mappings, index)
    check_sealed(recipe.sealed, seal, f"index {index!r}")
    check_keywords(mappings, index, recipe.field)
    policy = policy or Policy()
    _check_groups(recipe, index, policy)
    if pipeline is not None:
        remedy = "Open the index again, or leave the pipeline out: the gate takes the one of the index."
        recipe.check(pipeline.recipe(recipe.field), concrete, remedy)
    rules = policy.rules.or_noted(recipe)
    if policy.action == "refuse":
        # The index stores the rules of its groups, and this policy has no groups.
        rules = replace(rules, verify=policy.verify, min_similarity=policy.min_similarity)
    values = Values.of(mappings, rules.scope, index) if rules.scope else None
    model = similarity_model(recipe, rules, seal, values, mappings=mappings)
    scopes = [model.source_path(scope) for scope in model.scopes]
    parts = [f"{recipe.field}.{part}" for part in (*model.parts, GROUP, LEADER, PENDING, ATTEMPT)]
    intents, identities, pipelines = "", dict[str, str](), tuple[str, ...]()
    if isinstance(engine, GuardedWrites):
        check_updatable(engine, mappings, concrete)
        mapped = properties_at(mappings, recipe.field)
        if any(mapped.get(name) != wanted for name, wanted in _PLACEHOLDER.items()):
            engine.put_mappings(concrete, nest(recipe.field, _PLACEHOLDER))
        intents = ensure_intents(engine, concrete)
        check_intents(engine, intents)
        identities = engine.identities([concrete, intents])
        pipelines = engine.ingest_pipelines(concrete)
    elif not isinstance(engine, ExclusiveWrites):
        raise ConfigError("this engine has neither guarded nor exclusive writes, which a gate needs")
    milliseconds = round(lease * 1000)
    context = DecisionContext(
        policy,
        DocumentJudge(model),
        GateFields(recipe.field),
        _new_intent_id,
        SharedRegister(_new_intent_id, milliseconds) if intents else NullRegister(),
        groups=recipe.groups,
        lease=milliseconds,
        retry=DEFAULT_BACKOFF if intents else _NO_RETRIES,
    )
    read_back = (*parts, *scopes, *model.texts)
    return GateSetup(
        concrete, intents, recipe, model, context, read_back, identities, index, pipelines, routing
    )


def _check_groups(recipe: Recipe, index: str, policy: Policy) -> None:
    if policy.action != "refuse" and not recipe.groups:
        raise ConfigError(
            f"index {index!r} numbers no groups, which the policy {policy.action!r} needs: "
            f"{chain([suggest('setup', index, groups=True), suggest('regroup', index)])}"
        )


def _new_intent_id() -> str:
    return f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"


#: Retries do not help if an index fails for its only writer.
_NO_RETRIES = Backoff(retries=0)
#: The prefix of the names of indices behind data streams.
_STREAMED = ".ds-"
#: Index modes in which every document has a time, which a placeholder lacks.
_TIMED = ("logsdb", "time_series")


def concrete_index(engine: Engine, index: str) -> str:
    """Return the index that a name means, so that gates opened by any of its names share intents.

    Raises:
        ConfigError: the name means several indices, or a data stream.
    """
    # Not ``indices``, which also adds up sizes.
    names = list(engine.all_mappings(index))
    if names and all(name.startswith(_STREAMED) for name in names):
        raise ConfigError(
            f"{index!r} is a data stream, whose documents can't be changed, so that a gate can't reserve ids "
            "by placeholders: open the gate for an index"
        )
    if len(names) != 1:
        raise ConfigError(f"{index!r} means {len(names)} indices: name the one index that the gate is for")
    return names[0]


def check_updatable(engine: Engine, mappings: JSON, index: str) -> None:
    """Raise ``ConfigError`` for an index without placeholders, or that loses fields by an update.

    A gate updates a stored document to make it the leader of a group. It also updates a document to
    revoke the guard of a writer that died while changing it.
    """
    settings = settings_of(engine, index).get(index, {})
    if (mode := settings.get("index.mode")) in _TIMED:
        raise ConfigError(
            f"index {index!r} is in the mode {mode!r}, in which every document needs a time, and "
            "placeholders have none: open the gate for an index of the standard mode"
        )
    for obstacle in (*source_obstacles(mappings, settings), *change_obstacles(settings)):
        raise ConfigError(f"a gate can't be opened for index {index!r}: {obstacle}")


class EngineCalls(NamedTuple):
    """How an event loop calls methods of an engine; ``concurrently`` lets other tasks run meanwhile."""

    call: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
    concurrently: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]


async def _call_here(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return method()


async def _call_awaited(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return await method()


#: For a blocking engine, whose calls block the event loop; the loop belongs to the gate.
BLOCKING = EngineCalls(_call_here, asyncio.to_thread)
#: For an engine with awaited methods.
AWAITED = EngineCalls(_call_awaited, _call_awaited)
