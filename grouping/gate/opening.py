"""Opening a gate: check and prepare the index, and derive how its documents are compared and stored."""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, GuardedWrites, Parameters
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.documents import SourceFilter
from shinglefold.errors import ConfigError, EngineError, chain, suggest
from shinglefold.grouping.candidate_search import CandidateLookup
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.intent_register import NullRegister, SharedRegister
from shinglefold.grouping.gate.protocol.member import Member, Similarity
from shinglefold.grouping.gate.protocol.placeholders import GROUP, LEADER, GateFields
from shinglefold.grouping.gate.server_store import StoredDocuments
from shinglefold.grouping.intent_index import check_intents, ensure_intents
from shinglefold.grouping.rules import Policy
from shinglefold.grouping.scope_values import Values
from shinglefold.grouping.similarity import Rules, SimilarityModel, similarity_model
from shinglefold.ingest import Backoff
from shinglefold.ingest.field_paths import put
from shinglefold.maintenance.preconditions import change_obstacles, settings_of, source_obstacles
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal, check_seal, check_sealed
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts
from shinglefold.options.validation import check_engine, check_number, check_str
from shinglefold.rerank.hits import stored_value
from shinglefold.rerank.index_knowledge import check_keywords
from shinglefold.rerank.similar import QueryDocument

_LANGUAGE = "lang"


@dataclass(frozen=True, slots=True)
class FingerprintJudge:
    """Compares members with stored documents and with the prints of intents."""

    similarity_model: SimilarityModel

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Similarity | None]:
        """Return how alike members and stored sources are; None where they do not match.

        Cost: about 10 ns a pair, and some 200 µs for each text that is compared for the first time.
        """
        asked, hits, places = _distinct(pairs)
        found = {
            (one, other): Similarity(likeness, similarity)
            for one, other, likeness, similarity in self.similarity_model.similar_pairs(
                self.similarity_model.batch(asked), hits
            )
        }
        return [found.get(place) for place in places]

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members and the prints of intents may match.

        A gate with another policy may leave parts out of its prints. Then they may match: the document has
        them.
        """
        asked, hits, places = _distinct([(member, self._filled(member, told)) for member, told in pairs])
        batch = self.similarity_model.batch(asked)
        found = {(pair.one, pair.other) for pair in self.similarity_model.possible(batch, hits)}
        return [place in found for place in places]

    def _filled(self, member: Member, told: JSON) -> JSON:
        """Return the print of an intent, its missing parts taken from the member."""
        field, likeness = self.similarity_model.field, self.similarity_model
        own = stored_parts(member.document, field)
        there = stored_parts(told, field)
        left = [name for name in likeness.parts if name in own and name not in there]
        # A print says so where its document has no values.
        unknown = [one for one in likeness.scopes if stored_value(told, likeness.told_in(one)) is None]
        if not left and not unknown:
            return told
        told = put(told, field, {**there, **{name: own[name] for name in left}})
        for one in unknown:
            told = put(told, likeness.told_in(one), list(member.print.values.get(one.field, ())))
        return told

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        """Return the pairs of members that match, by position, the earlier one first."""
        batch = self.similarity_model.batch([one.print for one in members])
        return [(pair.one, pair.other) for pair in self.similarity_model.among(batch)]

    def print(self, member: Member, /) -> JSON:
        """Return the parts of a member that others compare, in the form of a stored document."""
        field, likeness = self.similarity_model.field, self.similarity_model
        parts = stored_parts(member.document, field)
        told: JSON = put(
            {}, field, {name: parts[name] for name in (_LANGUAGE, *likeness.parts) if name in parts}
        )
        for one in likeness.scopes:
            if not one.field.startswith(f"{field}."):
                told = put(told, likeness.told_in(one), list(member.print.values.get(one.field, ())))
        return told


def _distinct(
    pairs: Sequence[tuple[Member, Any]],
) -> tuple[list[QueryDocument], list[JSON], list[tuple[int, int]]]:
    """Return the members and the hits of pairs, each once, and the positions of both for each pair."""
    members: dict[int, int] = {}
    sources: dict[int, int] = {}
    asked: list[QueryDocument] = []
    hits: list[JSON] = []
    places: list[tuple[int, int]] = []
    for member, source in pairs:
        if (one := members.setdefault(id(member), len(asked))) == len(asked):
            asked.append(member.print)
        if (other := sources.setdefault(id(source), len(hits))) == len(hits):
            hits.append({"_source": source})
        places.append((one, other))
    return asked, hits, places


def match_keys_of(asked: QueryDocument) -> tuple[str, ...]:
    """Return the keys of which two documents that match have one in common: supershingles and text digest."""
    text = asked.print.digest
    return (*asked.print.supershingles, *((f"#{text}",) if text else ()))


#: The mapping of a placeholder; a sweep finds it by the first.
_PLACEHOLDER: JSON = {
    PENDING: {"type": "long"},
    ATTEMPT: {"type": "keyword", "index": False, "doc_values": False},
}


@dataclass(frozen=True, slots=True)
class GateSetup:
    """An index that a gate is open for.

    Attributes:
        intents: the index of intents, "" on an embedded engine, which needs none.
        read_back: the fields of documents that a decision reads again.
        first: the sort by which leaders come first.
        beside: fields of found documents that decide beside their fingerprints.
        identities: of both indices; another index of the same name has another one.
        named: the name it was opened by, perhaps an alias.
    """

    index: str
    intents: str
    recipe: Recipe
    likeness: SimilarityModel
    gate_fields: GateFields
    context: DecisionContext
    read_back: tuple[str, ...]
    first: tuple[JSON, ...]
    beside: tuple[str, ...]
    identities: Mapping[str, str]
    named: str

    @property
    def names(self) -> tuple[str, ...]:
        """The indices that the gate writes to, and the name it was opened by."""
        return tuple(name for name in dict.fromkeys((self.index, self.intents, self.named)) if name)

    def check_same(self, identities: Mapping[str, str]) -> None:
        """Check that both indices still exist and that the alias still means this index.

        A server would create a deleted index again for the next write. After a rollover new documents belong
        to another index.

        Args:
            identities: of all indices that ``names`` mean.

        Raises:
            EngineError: an index was replaced or deleted, or the alias moved.
        """
        others = [name for name, now in identities.items() if now and name not in self.identities]
        if others and any(self.identities.values()):
            raise EngineError(
                f"{self.named!r} meant the index {self.index!r} when this gate was opened, and now means "
                f"{', '.join(sorted(others))}, as after a rollover: open another gate for the index that "
                "takes new documents"
            )
        for name, known in self.identities.items():
            now = identities.get(name, "gone")
            if known and now and now != known:
                other = "" if now == "gone" else ", and there is another of its name"
                if name == self.intents:
                    raise EngineError(
                        f"index {name!r}, where gates keep their notes, was deleted while a gate of "
                        f"{self.index!r} was open{other}. No document is lost; leave that index to gates, "
                        "and open another gate"
                    )
                raise EngineError(
                    f"index {name!r} was deleted while a gate was open{other}: its documents are gone. Set "
                    f"{self.index!r} up again where it is missing, and open another gate"
                )

    def documents(self, engine: Engine | AsyncEngine, parameters: Parameters | None) -> StoredDocuments:
        """Return the searches of the index by an engine, blocking or awaited."""
        lookup = CandidateLookup(
            engine, self.index, self.likeness, beside=self.beside, first=self.first, parameters=parameters
        )
        return StoredDocuments(
            lookup, self.gate_fields, self.recipe.groups, self.context.policy.action == "cap"
        )

    @property
    def shared(self) -> SharedRegister | None:
        """The register that it shares with other gates; None on an embedded engine."""
        register = self.context.register
        return register if isinstance(register, SharedRegister) else None


def open_gate(  # noqa: PLR0917 - as gates are opened
    engine: Engine,
    index: str,
    policy: Policy,
    seal: Seal | None,
    lease: float,
    canonicalizer: Canonicalizer | None = None,
) -> GateSetup:
    """Check and prepare an index for a gate.

    Args:
        canonicalizer: of the index's scheme, for texts that decide; None makes one when it is first needed.

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
    check_source_fields(mappings, index, [*parts, *scopes])
    check_updatable(engine, mappings, concrete)
    intents, identities = "", dict[str, str]()
    if isinstance(engine, GuardedWrites):
        if not has_properties(mappings, recipe.field, _PLACEHOLDER):
            engine.put_mappings(concrete, nest(recipe.field, _PLACEHOLDER))
        intents = ensure_intents(engine, concrete)
        check_intents(engine, intents)
        identities = engine.identities([concrete, intents])
    elif not isinstance(engine, ExclusiveWrites):
        raise ConfigError("this engine has neither guarded nor exclusive writes, which a gate needs")
    milliseconds = round(lease * 1000)
    gate_fields = GateFields(recipe.field)
    context = DecisionContext(
        policy,
        FingerprintJudge(likeness),
        gate_fields,
        _new_intent_id,
        SharedRegister(_new_intent_id, milliseconds) if intents else NullRegister(),
        groups=recipe.groups,
        lease=milliseconds,
        # An index that fails for its only writer does not come back by itself.
        retry=Backoff() if intents else Backoff(retries=0),
    )
    read_back = (*parts, *scopes, *likeness.texts)
    leader, group = (f"{recipe.field}.{part}" for part in (LEADER, GROUP))
    first: tuple[JSON, ...] = ({leader: {"order": "desc", "missing": "_last"}},) if recipe.groups else ()
    if policy.action == "cap":
        first = (*first, {group: {"order": "asc", "missing": "_first"}})
    beside: tuple[str, ...] = {"refuse": (), "tag": (leader,), "cap": (leader, group)}[policy.action]
    return GateSetup(
        concrete, intents, recipe, likeness, gate_fields, context, read_back, first, beside, identities, index
    )


def _likeness(  # noqa: PLR0917 - as ``open_gate``
    recipe: Recipe,
    policy: Policy,
    seal: Seal | None,
    canonicalizer: Canonicalizer | None,
    mappings: JSON,
    index: str,
) -> SimilarityModel:
    own = _rules(policy)
    rules = own.or_noted(recipe)
    if policy.action == "refuse":
        # The index notes the rules of its groups, and this policy has no groups.
        rules = replace(rules, verify=own.verify, min_similarity=own.min_similarity)
    values = Values.of(mappings, rules.scope, index)
    return similarity_model(recipe, rules, seal, values, canonicalizer, facts=policy.facts)


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


def _new_intent_id() -> str:
    return f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"


#: Prefix of the indices behind data streams.
_STREAMED = ".ds-"
#: Index modes in which every document has a time, which a placeholder lacks.
_TIMED = ("logsdb", "time_series")


def concrete_index(engine: Engine, index: str) -> str:
    """Return the index that a name means, so that all its names share intents."""
    names = [info.name for info in engine.indices(index)]
    if len(names) != 1:
        raise ConfigError(f"{index!r} means {len(names)} indices: name the one index that the gate is for")
    if names[0].startswith(_STREAMED):
        raise ConfigError(
            f"{index!r} is a data stream, whose documents can't be changed, and a gate reserves their ids by "
            "placeholders: open it for an index"
        )
    return names[0]


def check_source_fields(mappings: JSON, index: str, paths: Iterable[str]) -> None:
    """Refuse an index whose ``_source`` omits fields that a decision reads again.

    Raises:
        ConfigError: it omits one of these fields.
    """
    source = mappings.get("_source") or {}
    stored = source.get("enabled") is not False and source.get("mode") != "disabled"
    kept = SourceFilter(stored, tuple(source.get("includes", ())), tuple(source.get("excludes", ())))
    hidden = [path for path in paths if not kept.shows(path)]
    if hidden:
        raise ConfigError(
            f"index {index!r}: its _source leaves out {', '.join(hidden)}, by which a gate decides: index "
            "the documents into an index that stores them whole"
        )


def check_updatable(engine: Engine, mappings: JSON, index: str) -> None:
    """Refuse an index that takes no placeholders, or whose documents would lose fields by an update.

    A gate updates a stored document to make it the leader of a group, and where a writer died that was to
    change it.

    Raises:
        ConfigError: the index is one of these.
    """
    settings = settings_of(engine, index).get(index, {})
    if (mode := settings.get("index.mode")) in _TIMED:
        raise ConfigError(
            f"index {index!r} is in the mode {mode!r}, in which every document needs a time, and "
            "placeholders have none: open the gate for an index of the standard mode"
        )
    for told in (*source_obstacles(mappings, settings), *change_obstacles(settings)):
        raise ConfigError(f"a gate can't be opened for index {index!r}: {told}")


def has_properties(mappings: JSON, field: str, properties: JSON) -> bool:
    """Return whether a field has properties already, so that the mappings need not change."""
    node: Any = mappings
    for name in field.split("."):
        node = (node.get("properties") or {}).get(name) or {}
    there = node.get("properties") or {}
    return all(there.get(name) == wanted for name, wanted in properties.items())


def nest(field: str, properties: JSON) -> JSON:
    """Return mappings with properties below a field."""
    for name in reversed(field.split(".")):
        properties = {name: {"properties": properties}}
    return {"properties": properties}
