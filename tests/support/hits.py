"""Made-up hits with real packed signatures, and a collapse written anew, pair by pair."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from support.maintenance import put

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.values import Fingerprint, Token
from shinglefold.rerank.similar import SimilarOptions, SimilarPage, SimilarSearch
from shinglefold.rerank.similar.search import Wanted
from shinglefold.sketch.b_bit_minhash import estimate, pack

SCHEME = Scheme()
VALUES, BITS = SCHEME.sketch.values, SCHEME.sketch.bits
#: How many values may differ between two hits that match.
MOST = int(np.count_nonzero(estimate(np.arange(VALUES), VALUES, BITS)[0] >= SCHEME.decision.min_resemblance))


@dataclass(frozen=True)
class Spec:
    """A hit to make: a copy of an original with some values changed, or one without a signature.

    ``changed``: in sixtieths of the values that may differ between hits that match.
    """

    original: int = 0
    changed: int = 0
    seed: int = 0
    shingles: int = 300
    lang: str = "ru"
    digest: str = ""
    signed: bool = True
    scheme: str = SCHEME.id
    host: str | None = "a.org"
    published: int | None = 0


def values_of(spec: Spec) -> np.ndarray:
    """The b-bit values of a hit, each changed one surely different."""
    return _values(spec.original, spec.seed, spec.changed)


# Lists of hits are compared pair by pair: making a hit's values takes ten times the comparison.
@cache
def _values(original: int, seed: int, changed: int) -> np.ndarray:
    values = np.random.default_rng(original).integers(0, 2**BITS, VALUES, dtype=np.uint32)
    places = np.random.default_rng(seed + 7919).permutation(VALUES)[: round(changed * MOST / 60)]
    values[places] = (values[places] + 1 + seed % (2**BITS - 1)) % 2**BITS
    values.flags.writeable = False
    return values


def signature_of(spec: Spec) -> bytes:
    return pack(values_of(spec)[None, :], BITS).tobytes() if spec.signed else b""


def fingerprint_of(spec: Spec) -> Fingerprint:
    """What would be stored for a hit."""
    words = tuple(_grouped(spec)) if spec.signed else ()
    return Fingerprint(spec.scheme, spec.lang, spec.shingles, spec.digest, words, signature_of(spec))


def hits_of(specs: Sequence[Spec]) -> list[dict[str, Any]]:
    """The hits as an engine returns them for ``docvalue_fields``, best first."""
    return [
        {"_index": "pages", "_id": str(rank), "_score": 100.0 - rank, "fields": _fields(spec)}
        for rank, spec in enumerate(specs)
    ]


def _fields(spec: Spec) -> dict[str, list[Any]]:
    stored = fingerprint_of(spec).to_field()
    fields = {
        f"_dedup.{name}": value if isinstance(value, list) else [value] for name, value in stored.items()
    }
    if spec.host is not None:
        fields["host"] = [spec.host]
    if spec.published is not None:
        fields["published"] = [spec.published * 1000]
    return fields


def _grouped(spec: Spec) -> list[str]:
    size = SCHEME.sketch.group_size
    values = values_of(spec)
    groups = (values[at * size : (at + 1) * size] for at in range(SCHEME.sketch.groups))
    return [f"{slot:02}-" + "-".join(map(str, group)) for slot, group in enumerate(groups)]


#: Few originals and changes about the threshold (60), so that groups touch and overlap.
specs = st.lists(
    st.builds(
        Spec,
        original=st.integers(0, 3),
        changed=st.one_of(st.integers(0, 90), st.integers(25, 36), st.integers(56, 64)),
        seed=st.integers(0, 40),
        shingles=st.sampled_from([300, 310, 360, 450, 900]),
        lang=st.sampled_from(["ru", "ru", "ru", "uk"]),
        digest=st.sampled_from(["", "", "", "x", "y"]),
        signed=st.sampled_from([True, True, True, True, False]),
        scheme=st.sampled_from([SCHEME.id, SCHEME.id, SCHEME.id, SCHEME.id, "sf1-other"]),
        host=st.sampled_from(["a.org", "b.org", None]),
        published=st.sampled_from([0, 50, 100, 200, None]),
    ),
    max_size=24,
)


def match(
    a: Spec,
    b: Spec,
    least: float = SCHEME.decision.min_resemblance,
    ratio: float = SCHEME.decision.min_length_ratio,
    shared: int = 0,
) -> bool:
    """Whether two hits match, value by value."""
    if a.digest and (a.scheme, a.digest) == (b.scheme, b.digest):
        return True
    if not (a.signed and b.signed and a.scheme == b.scheme == SCHEME.id):
        return False
    agreeing = np.count_nonzero(values_of(a) == values_of(b))
    common = len(set(_grouped(a)) & set(_grouped(b))) if shared else 0
    return (
        estimate(agreeing, VALUES, BITS)[0] >= least
        and 2 * min(a.shingles, b.shingles) / (a.shingles + b.shingles) >= ratio
        and common >= shared
    )


def leader_groups(specs: Sequence[Spec], **limits: Any) -> list[list[int]]:
    """Greedy groups in rank order, every hit compared with every leader before it."""
    found: list[list[int]] = []
    for rank, spec in enumerate(specs):
        home = next((group for group in found if match(specs[group[0]], spec, **limits)), None)
        found.append([rank]) if home is None else home.append(rank)
    return found


def connected_groups(specs: Sequence[Spec]) -> list[list[int]]:
    """The connected components, by walking from hit to hit."""
    found: list[list[int]] = []
    seen: set[int] = set()
    for rank in range(len(specs)):
        if rank in seen:
            continue
        group, waiting = {rank}, [rank]
        while waiting:
            here = waiting.pop()
            near = [
                other
                for other in range(len(specs))
                if other not in group and match(specs[here], specs[other])
            ]
            group.update(near)
            waiting.extend(near)
        seen |= group
        found.append(sorted(group))
    return found


def random_rows(rng: np.random.Generator, scheme: Scheme, count: int) -> np.ndarray:
    """Signatures about the threshold of each other, as packed rows."""
    values, most = scheme.sketch.values, 2**scheme.sketch.bits
    original = rng.integers(0, most, values, dtype=np.uint32)
    changed = rng.random((count, values)) < rng.random((count, 1)) * 0.45
    other = rng.integers(0, most, (count, values), dtype=np.uint32)
    return pack(np.where(changed, other, original), scheme.sketch.bits)


def hits_of_rows(rows: np.ndarray, scheme: Scheme = SCHEME) -> list[dict[str, Any]]:
    """Hits with these packed signatures."""
    fields = {"_dedup.scheme": [scheme.id], "_dedup.lang": ["ru"], "_dedup.shingles": [300]}
    return [
        {"_id": str(rank), "fields": fields | {"_dedup.signature": [b64encode(row).decode()]}}
        for rank, row in enumerate(rows)
    ]


def signed(scheme: Scheme, documents: Iterable[JSON], definition: JSON | None = None) -> dict[str, JSON]:
    """The documents with their fingerprints, by id."""
    made = Pipeline.from_json(definition or default_definition(), scheme).run(documents)
    return {one.document["id"]: dict(one.document) for one in made if one.document}


def fill(engine: Engine, index: str, sources: Mapping[str, JSON], made: Any = None, **types: str) -> None:
    """Create an index with fields of these types, and store documents by id."""
    made = made or mappings(SCHEME)
    made["properties"] |= {name: {"type": kind} for name, kind in types.items()}
    engine.create_index(index, made, {})
    put(engine, index, sources)


def ids(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    return [hit["_id"] for hit in hits]


def groups(answer: Mapping[str, Any]) -> list[list[str]]:
    """The ids of each group of a page, the one shown first."""
    return [ids(hit["inner_hits"]["duplicates"]["hits"]["hits"]) for hit in answer["hits"]["hits"]]


def split(text: str, _language: str | None = None) -> list[Token]:
    """Words between spaces, for an engine whose analysis does not matter here."""
    tokens, start = [], 0
    for word in text.split(" "):
        tokens.append(Token(word.lower(), start, start + len(word), "en"))
        start += len(word) + 1
    return [token for token in tokens if token.text]


def find_similar(
    engine: Engine, index: str, wanted: Wanted, seal: Seal | None = None, **options: Any
) -> SimilarPage:
    """The first page of copies, by a search of its own."""
    return SimilarSearch(engine, seal=seal).find(index, wanted, SimilarOptions(**options))


#: A genuine fingerprint.
SEAL = Seal.parse("a key that nobody else knows")
OTHER = Seal.parse("a key that somebody else knows")
GENUINE = fingerprint_of(Spec(digest="same"))


def forgeries() -> list[Fingerprint]:
    """What a client without the key can write so as to fold with a genuine document."""
    sealed = SEAL.sealed(GENUINE)
    unlike = SEAL.sealed(fingerprint_of(Spec(original=9, digest="other")))
    return [
        GENUINE,
        OTHER.sealed(GENUINE),
        replace(GENUINE, seal="A" * 16),
        replace(unlike, digest=sealed.digest),
        replace(unlike, signature=sealed.signature),
        replace(sealed, shingles=sealed.shingles + 1),
        replace(sealed, signature=b"", supershingles=()),
    ]
