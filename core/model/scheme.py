"""A scheme: all parameters that determine a signature, under one id.

Two documents can be compared only if their schemes have the same id. The rules of a comparison (``Decision``)
are not part of the id, so they may change without a backfill.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, get_args

import xxhash

from shinglefold.errors import ConfigError, SchemeMismatch, quote
from shinglefold.options.validation import check_bool, check_choice, check_int, check_known, check_number

Mode = Literal["lemma", "stem", "surface"]
#: What decides whether two documents are near-duplicates.
Verify = Literal["keywords", "signature", "text"]
#: The version of the algorithm. Increase it with any change after which the same parameters yield other
#: bytes.
ALGORITHM = 3
#: The way to verify that each threshold implies.
_THRESHOLDS: Mapping[str, Verify] = MappingProxyType(
    {"min_resemblance": "signature", "min_similarity": "text"}
)
#: Options newer than the first stored schemes, with the values those schemes imply. An id covers them only if
#: they differ, so stored schemes keep their ids.
_SINCE: Mapping[str, bool] = {"counted": False, "both_ends": False}


@dataclass(frozen=True, slots=True)
class CanonOptions:
    """How words of a language become canonical tokens.

    Attributes:
        mode: the strongest normalization wanted; a language that lacks it uses the next weaker one.
        drop_function_words: drop prepositions, conjunctions, particles and pronouns. Copies that differ only
            in them become alike (resemblance .50 → .94), but fewer real revisions are found
            (bench/quality/schemes.py).
        drop_adjectives: drop adjectives, if the language recognizes them.
        min_length: drop words of fewer characters; single Han characters always stay.
    """

    mode: Mode = "lemma"
    drop_function_words: bool = False
    drop_adjectives: bool = False
    min_length: int = 1

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        for name in ("drop_function_words", "drop_adjectives"):
            check_bool(name, getattr(self, name))
        check_int("min_length", self.min_length, 1, 64)


@dataclass(frozen=True, slots=True)
class LanguageRef:
    """One language of a scheme: its code, the version of its rules and dictionary, and its options."""

    code: str
    version: str
    options: CanonOptions = CanonOptions()


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """How tokens become a signature and supershingles (Broder 1997, Fetterly 2003).

    Attributes:
        word_width, char_width: tokens in a shingle if the unit is the word, or the character.
        values: K, how many min-hashes.
        bits: b, how many bits of each the stored signature keeps.
        groups, group_size: M supershingles of N consecutive min-hashes, over the first M·N values.
        min_shingles: documents with fewer distinct shingles get no signature.
        seed: selects the hash functions.
        counted: repeated shingles are different elements: resemblance of bags instead of sets, which is
            nearer to the edit similarity of words (bench/quality/schemes.py).
        both_ends: each function yields two values, its minimum and its maximum (as 2³² − 1 − maximum), so K
            values cost little more than K/2. The minima come first.
    """

    word_width: int = 2
    char_width: int = 2
    values: int = 336
    bits: int = 2
    groups: int = 21
    group_size: int = 4
    min_shingles: int = 4
    seed: int = 1
    counted: bool = True
    both_ends: bool = True

    def __post_init__(self) -> None:
        check_int("word_width", self.word_width, 1, 10)
        check_int("char_width", self.char_width, 1, 10)
        check_int("values", self.values, 1, 4096)
        if self.bits not in (1, 2, 4, 8, 16, 32):
            raise ConfigError(f"bits {self.bits} is none of 1, 2, 4, 8, 16, 32")
        check_int("groups", self.groups, 1, 1024)
        check_int("group_size", self.group_size, 1, self.values)
        if self.groups * self.group_size > self.values:
            raise ConfigError(
                f"{self.groups} groups of {self.group_size} need {self.groups * self.group_size} values, "
                f"the signature has {self.values}: raise values or lower groups or group_size"
            )
        check_int("min_shingles", self.min_shingles, 1, 1_000_000)
        check_int("seed", self.seed, 0, 2**64 - 1)
        for name in _SINCE:
            check_bool(name, getattr(self, name))
        if self.both_ends and self.values % 2:
            raise ConfigError(
                f"values {self.values} is odd, and every function gives two: "
                f"take {self.values + 1}, or set both_ends to false"
            )


@dataclass(frozen=True, slots=True)
class Decision:
    """When two documents of one scheme count as near-duplicates.

    Attributes:
        min_shared: k, how many supershingles a candidate pair must share.
        min_resemblance: t, the least estimated resemblance if the signature decides.
        min_length_ratio: the least 2·min(a, b)/(a + b) of the shingle counts; 0 switches it off.
        verify: what decides on candidates. ``keywords``: nothing more; ``signature``: estimate and length
            ratio;
            ``text``: the texts if they are available, else the signature.
        min_similarity: the least edit similarity of the words if the texts decide.
    """

    min_shared: int = 1
    min_resemblance: float = 0.61
    min_length_ratio: float = 0.8
    verify: Verify = "text"
    min_similarity: float = 0.8

    def __post_init__(self) -> None:
        check_choice("way to verify", self.verify, get_args(Verify))
        check_number("min_similarity", self.min_similarity, 0, 1)
        check_int("min_shared", self.min_shared, 1, 1024)
        check_number("min_resemblance", self.min_resemblance, 0, 1)
        check_number("min_length_ratio", self.min_length_ratio, 0, 1)


@dataclass(frozen=True, slots=True)
class Scheme:
    """Name, languages and parameters; every stored fingerprint has the ``id``."""

    languages: tuple[LanguageRef, ...] = ()
    name: str = "default"
    sketch: SketchOptions = SketchOptions()
    decision: Decision = field(default=Decision(), compare=False)

    @property
    def id(self) -> str:
        """Return ``sf<algorithm>-<13 hex digits>``, a hash of everything that determines a signature."""
        return _id(self.languages, self.sketch)

    def with_options(self, **options: Any) -> "Scheme":  # noqa: ANN401 - each option has its own type
        """Return a scheme with some ``SketchOptions`` or ``Decision`` fields replaced, by name.

        A single threshold also sets ``verify``: ``min_resemblance`` to ``signature``, ``min_similarity`` to
        ``text``, with the other thresholds that go with it (``thresholds``).

        Raises:
            ConfigError: an unknown option, or both thresholds without ``verify``.
        """
        options = {**_implied_verify(options), **options}
        if options.get("min_similarity") is not None and options["verify"] == "text":
            options = {**thresholds(options["min_similarity"]), **options}
        sketch = {f.name for f in fields(SketchOptions)} & options.keys()
        decision = {f.name for f in fields(Decision)} & options.keys()
        known = [f.name for f in (*fields(SketchOptions), *fields(Decision))]
        check_known("scheme option", options.keys() - sketch - decision, known)
        return replace(
            self,
            sketch=replace(self.sketch, **{name: options[name] for name in sketch}),
            decision=replace(self.decision, **{name: options[name] for name in decision}),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the scheme as JSON, for a mapping's ``_meta.shinglefold``."""
        return {"id": self.id, "algorithm": ALGORITHM, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Scheme":
        """Read what ``to_json`` wrote.

        Raises:
            ConfigError: it is not a scheme.
            SchemeMismatch: its parameters have another id here; another version of shinglefold made it.
        """
        try:
            languages = tuple(
                LanguageRef(ref["code"], ref["version"], CanonOptions(**ref["options"]))
                for ref in data["languages"]
            )
            sketch = SketchOptions(**{**_SINCE, **data["sketch"]})
            # Earlier versions stored that facts did not count.
            own = {
                name: value for name, value in data["decision"].items() if (name, value) != ("facts", "any")
            }
            decision = Decision(**own)
            scheme = cls(languages, data["name"], sketch, decision)
        except (KeyError, TypeError) as error:
            raise ConfigError(f"not a stored scheme: {error!r}") from error
        if data.get("id", scheme.id) != scheme.id:
            raise SchemeMismatch(
                found=str(data["id"]),
                expected=scheme.id,
                where=f"the scheme {scheme.name!r}",
                remedy="Use the version of shinglefold that made it, or index all documents again.",
            )
        return scheme


def checked_scheme(scheme: object) -> Scheme:
    """Return a scheme, and raise if it is anything else.

    Raises:
        ConfigError: it is the name of a preset, or another value.
    """
    if not isinstance(scheme, Scheme):
        raise ConfigError(
            f"{quote(scheme)} is not a Scheme; give that of the index, "
            "Recipe.of(engine.mappings(index), index).scheme (from shinglefold.model.recipe), "
            'or a new one, make_scheme("default") (from shinglefold.registry)'
        )
    return scheme


def _implied_verify(options: Mapping[str, Any]) -> dict[str, Verify]:
    """Return the ``verify`` option that a single threshold implies."""
    given = [name for name in _THRESHOLDS if name in options]
    if "verify" in options or not given:
        return {}
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)}: one of them decides; set verify to signature or text")
    return {"verify": _THRESHOLDS[given[0]]}


def verified_by(
    decision: Decision, verify: Verify | None, min_resemblance: float | None, min_similarity: float | None
) -> Verify:
    """Return the way to verify: the one given, or the one a threshold implies, or the scheme's.

    Raises:
        ConfigError: both thresholds are given without ``verify``.
    """
    given = {"min_resemblance": min_resemblance, "min_similarity": min_similarity}
    thresholds = {name: value for name, value in given.items() if value is not None}
    return verify or _implied_verify(thresholds).get("verify", decision.verify)


@lru_cache(maxsize=64)  # every search needs it
def _id(languages: tuple[LanguageRef, ...], sketch: SketchOptions) -> str:
    own = asdict(sketch)
    named = {name: value for name, value in own.items() if value is not _SINCE.get(name)}
    identity = {"languages": [asdict(ref) for ref in languages], "sketch": named}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sf{ALGORITHM}-{xxhash.xxh3_64_hexdigest(text.encode())[:13]}"


_ONCE = SketchOptions(values=168, bits=4, counted=False, both_ends=False)
#: Presets by name. "default" measures best on real revisions; "compact" takes a third less space; "once" was
#: the default before repeated shingles counted; the others follow the literature.
PRESETS: Mapping[str, Scheme] = {
    "default": Scheme(),
    "compact": Scheme(name="compact", sketch=SketchOptions(values=240, groups=12, group_size=3)),
    "once": Scheme(name="once", sketch=_ONCE, decision=Decision(min_resemblance=0.62)),
    "classic": Scheme(
        name="classic",
        sketch=replace(_ONCE, word_width=3, char_width=3, values=84, bits=8, groups=14, group_size=6),
        decision=Decision(min_resemblance=0.62, verify="signature"),
    ),
    "fetterly": Scheme(
        name="fetterly",
        sketch=replace(_ONCE, word_width=5, char_width=5, values=84, bits=8, groups=6, group_size=14),
        decision=Decision(min_shared=2, min_resemblance=0.0, min_length_ratio=0.0, verify="keywords"),
    ),
}


def thresholds(similarity: float) -> dict[str, Any]:
    """Return the thresholds of a decision for one similarity, 0 to 1.

    Texts decide by their edit similarity s. Texts of similarity s have a resemblance of at most s/(2 - s),
    and a length ratio of at least s. The signature alone decides pairs with more resemblance, and pairs
    whose texts can't be read.
    """
    check_number("min_similarity", similarity, 0, 1)
    return {
        "verify": "text",
        "min_similarity": similarity,
        "min_resemblance": round(similarity / (2 - similarity), 4),
        "min_length_ratio": min(0.8, similarity),
    }
