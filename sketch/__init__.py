"""Token hashes to shingles, MinHash signatures and supershingles, and what these tell of two documents."""

from shinglefold.sketch.bit_agreement import (
    agreement,
    agreement_matrix,
    agreement_rows,
    bit_planes,
    differing,
    lowest_bits,
)
from shinglefold.sketch.bit_packing import low_bits, pack, packed_size, unpack
from shinglefold.sketch.cluster.all_pairs import Pairs, find_pairs, iter_pairs
from shinglefold.sketch.cluster.candidates import Buckets, nominate
from shinglefold.sketch.cluster.clustering import Forest, connect, connect_crowded, connected, led
from shinglefold.sketch.decide.edit_similarity import Texts, Words, alike_by_text, least_estimate, similarity
from shinglefold.sketch.decide.estimators import estimate, length_ratio, standard_error
from shinglefold.sketch.decide.verifier import PairVerdicts, PairVerifier
from shinglefold.sketch.digest import digests
from shinglefold.sketch.layout_advice import (
    Advice,
    Requirements,
    advise,
    probability,
    resemblance_after,
    width_for,
)
from shinglefold.sketch.shingles import containment, resemblance, shingle_hashes, shingle_set, sorensen
from shinglefold.sketch.sketcher import Sketcher, Sketches
from shinglefold.sketch.supershingles import (
    HASHED,
    from_letters,
    letters,
    megashingles,
    slot_characters,
    supershingles,
    to_keywords,
)

__all__ = [
    "HASHED",
    "Advice",
    "Buckets",
    "Forest",
    "PairVerdicts",
    "PairVerifier",
    "Pairs",
    "Requirements",
    "Sketcher",
    "Sketches",
    "Texts",
    "Words",
    "advise",
    "agreement",
    "agreement_matrix",
    "agreement_rows",
    "alike_by_text",
    "bit_planes",
    "connect",
    "connect_crowded",
    "connected",
    "containment",
    "differing",
    "digests",
    "estimate",
    "find_pairs",
    "from_letters",
    "iter_pairs",
    "least_estimate",
    "led",
    "length_ratio",
    "letters",
    "low_bits",
    "lowest_bits",
    "megashingles",
    "nominate",
    "pack",
    "packed_size",
    "probability",
    "resemblance",
    "resemblance_after",
    "shingle_hashes",
    "shingle_set",
    "similarity",
    "slot_characters",
    "sorensen",
    "standard_error",
    "supershingles",
    "to_keywords",
    "unpack",
    "width_for",
]
