"""shinglefold: the fuzzy-duplicate stage for OpenSearch and Elasticsearch.

The packages follow the data: ``canon`` (text to canonical tokens), ``sketch`` (tokens to supershingles),
``ingest`` (documents in), ``engines`` (where they are kept), ``rerank`` (hits out, folded).
"""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.errors import ShinglefoldError
    from shinglefold.model import Fingerprint, Sample, Token, TokenBatch
    from shinglefold.scheme import CanonOptions, Scheme

__all__ = ["CanonOptions", "Fingerprint", "Sample", "Scheme", "ShinglefoldError", "Token", "TokenBatch"]
__version__ = "0.1.0"

_HOMES = {
    "ShinglefoldError": "shinglefold.errors",
    "Fingerprint": "shinglefold.model",
    "Sample": "shinglefold.model",
    "Token": "shinglefold.model",
    "TokenBatch": "shinglefold.model",
    "CanonOptions": "shinglefold.scheme",
    "Scheme": "shinglefold.scheme",
}

# `shinglefold --help` shall not wait for numpy.
__getattr__ = lazily(__name__, _HOMES)
