"""shinglefold: the fuzzy-duplicate stage for OpenSearch and Elasticsearch.

The packages follow the data: ``canon`` (text to canonical tokens), ``sketch`` (tokens to supershingles),
``ingest`` (documents in), ``engines`` (where they are kept), ``rerank`` (hits out, folded).
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.errors import ShinglefoldError
    from shinglefold.model.scheme import CanonOptions, Scheme
    from shinglefold.model.values import Fingerprint, Sample, Token, TokenBatch

__all__ = ["CanonOptions", "Fingerprint", "Sample", "Scheme", "ShinglefoldError", "Token", "TokenBatch"]
__version__ = "0.1.0"

_HOMES = {
    "ShinglefoldError": "shinglefold.errors",
    "Fingerprint": "shinglefold.model.values",
    "Sample": "shinglefold.model.values",
    "Token": "shinglefold.model.values",
    "TokenBatch": "shinglefold.model.values",
    "CanonOptions": "shinglefold.model.scheme",
    "Scheme": "shinglefold.model.scheme",
}

# `shinglefold --help` shall not wait for numpy.
__getattr__ = lazy_attributes(__name__, _HOMES)
