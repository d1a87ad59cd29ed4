"""The keyword arguments of ``shinglefold.open`` and of the methods of an open index."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from shinglefold.api.index_recipe import MOST_NAMES
from shinglefold.contracts.engine import HasConnection
from shinglefold.errors import RecipeMismatch
from shinglefold.grouping import Policy
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.profiles import profile_of
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Scheme, thresholds
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.options.validation import check_choice, check_fraction, check_str, check_strings, expected
from shinglefold.registry import codes_with_any
from shinglefold.rerank import FoldOptions, Scope
from shinglefold.rerank.matching import MatchOptions
from shinglefold.rerank.request.fold_options import OnTrouble
from shinglefold.rerank.similar import SimilarOptions
from shinglefold.settings import Settings


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The keyword arguments of ``shinglefold.open``, checked; see there."""

    text: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    fingerprint_field: str | None = None
    similarity: float | None = None
    profile: str | None = None
    never_differ: tuple[str, ...] | None = None
    dedup: FoldOptions | Mapping[str, Any] | None = None
    policy: Policy = field(default_factory=Policy)
    seal_key: str | None = field(default=None, repr=False)
    cursor_key: bytes | None = field(default=None, repr=False)
    on_trouble: OnTrouble = "unfolded"

    @classmethod
    def parse(
        cls,
        *,
        text: Sequence[str] | None = None,
        languages: Sequence[str] | None = None,
        fingerprint_field: str | None = None,
        similarity: float | None = None,
        profile: str | None = None,
        never_differ: Sequence[str] | None = None,
        dedup: FoldOptions | Mapping[str, Any] | None = None,
        policy: Policy | str = "refuse",
        seal_key: str | None = None,
        cursor_key: bytes | str | None = None,
        on_trouble: OnTrouble = "unfolded",
    ) -> "IndexOptions":
        """Check the arguments.

        Raises:
            ConfigError: one of them is not valid.
        """
        check_fraction("similarity", similarity)
        for name, value in (("fingerprint_field", fingerprint_field), ("seal_key", seal_key)):
            if value is not None:
                check_str(name, value)
        check_choice("on_trouble", on_trouble, get_args(OnTrouble))
        profile_of("" if profile is None else profile)
        if not isinstance(dedup, FoldOptions | None):
            FoldOptions.parse(dedup)
        if not isinstance(policy, str | Policy):
            raise expected("policy", '"refuse", "tag" or a Policy (from shinglefold.grouping)', policy)
        if cursor_key is not None and not isinstance(cursor_key, str | bytes):
            raise expected("cursor_key", "text or bytes", type(cursor_key).__name__)
        return cls(
            None if text is None else check_strings("text", text, MOST_NAMES),
            codes_with_any(languages),
            fingerprint_field,
            similarity,
            profile,
            None if never_differ is None else tuple(NeverDiffer.parse(never_differ).names),
            dedup,
            Policy(policy) if isinstance(policy, str) else policy,  # type: ignore[arg-type]
            seal_key,
            cursor_key.encode() if isinstance(cursor_key, str) else cursor_key,
            on_trouble,
        )

    def scheme(self, recipe: Recipe) -> Scheme:
        """Return the scheme of an index with the threshold of the arguments."""
        if self.similarity is None:
            return recipe.scheme
        return recipe.scheme.with_options(**thresholds(self.similarity))

    def fold_options(self, recipe: Recipe) -> FoldOptions | None:
        """Return the defaults of ``ext.dedup``: those of the arguments, else of the profile of the index.

        If the arguments have a ``similarity``, texts decide.
        """
        chosen = self.dedup
        if not isinstance(chosen, FoldOptions):
            own = profile_of(recipe.profile).dedup
            base = FoldOptions.parse(own) if own else None
            chosen = base if chosen is None else FoldOptions.parse(chosen, base)
        if self.similarity is None or (chosen is not None and chosen.verify is not None):
            return chosen
        return replace(chosen or FoldOptions(), verify="text")

    def gate_policy(self) -> Policy:
        """Return the policy of the gate with the threshold of the arguments."""
        if self.similarity is None or self.policy.min_similarity is not None:
            return self.policy
        return replace(self.policy, **thresholds(self.similarity))

    def check(self, recipe: Recipe, index: str) -> None:
        """Check that no argument contradicts the recipe of an index.

        Raises:
            RecipeMismatch: one does; the message says how to change the index.
        """
        field, profile = (None if one is None else (one,) for one in (self.fingerprint_field, self.profile))
        given = (
            ("the text fields", recipe.fields, self.text, "text"),
            (
                "the languages",
                tuple(ref.code for ref in recipe.scheme.languages),
                self.languages and tuple(sorted(self.languages)),
                "languages",
            ),
            ("the fingerprint field", (recipe.field,), field, "fingerprint_field"),
            ("the profile", (recipe.profile,), profile, "profile"),
            (
                "what never differs",
                NeverDiffer.parse(recipe.never_differ).names,
                self.never_differ,
                "never_differ",
            ),
        )
        for what, found, wanted, name in given:
            if wanted is not None and tuple(found) != tuple(wanted):
                remedy = (
                    f"Leave {name} out, or change the index with shinglefold.setup(…, {index!r}, {name}=…), "
                    "then backfill()"
                )
                raise RecipeMismatch(
                    what,
                    ", ".join(filter(None, found)) or "none",
                    ", ".join(filter(None, wanted)) or "none",
                    f"index {index!r}",
                    remedy,
                )

    def seal(self, recipe: Recipe, settings: Settings, index: str) -> Seal | None:
        """Return the seal of an index, None if it is not sealed.

        Raises:
            ConfigError: the index is sealed with another key than that of the arguments or settings.
        """
        key = self.seal_key or settings.seal_key
        seal = Seal.parse(key) if key else None
        if not recipe.sealed and self.seal_key is None:
            return None
        check_sealed(recipe.sealed, seal, f"index {index!r}")
        return seal

    def cursor_secret(self, settings: Settings, engine: object, index: str, scheme: Scheme) -> bytes:
        """Return the key that seals cursors, the same in every process with the same settings.

        It is that of the arguments, else derived from the first of these secrets: the setting ``cursor_key``,
        the key of the seal, the credentials of the server. Without a secret, cursors can be forged.
        """
        if self.cursor_key is not None:
            return self.cursor_key
        credentials = engine.connection.authorization() if isinstance(engine, HasConnection) else ""
        secret = settings.cursor_key or self.seal_key or settings.seal_key or credentials
        made = hashlib.blake2b(f"{index} {scheme.id}".encode(), key=hashlib.sha256(secret.encode()).digest())
        return made.digest()[:32]


def similar_options(
    opened: IndexOptions,
    *,
    size: int = 10,
    similarity: float | None = None,
    scope: str | Sequence[str] = (),
    filters: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    source: Any = True,  # noqa: ANN401 - a filter as engines take it
) -> tuple[SimilarOptions, tuple[Scope, ...]]:
    """Return the options of ``similar``, and its scopes."""
    check_fraction("similarity", similarity)
    least = opened.similarity if similarity is None else similarity
    scopes = tuple(map(Scope.parse, _several("scope", scope)))
    chosen = {} if least is None else thresholds(least)
    filters = _several("filters", filters)
    return SimilarOptions(size=size, scope=scopes, filters=filters, source=source, **chosen), scopes


def match_options(
    *,
    size: int = 10,
    min_share: float = 0.05,
    filters: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    source: Any = True,  # noqa: ANN401 - a filter as engines take it
) -> MatchOptions:
    """Return the options of ``matches``."""
    return MatchOptions(min_share, _several("filters", filters), size, source=source)


def _several(name: str, given: Any) -> tuple[Any, ...]:  # noqa: ANN401 - as given
    """Return one value or several as a tuple; the values are checked where they are read."""
    if isinstance(given, str | Mapping):
        return (given,)
    if not isinstance(given, Iterable):
        raise expected(name, "a list", given)
    return tuple(given)
