"""A genuine fingerprint, and all that a client without the key can make of it."""

from dataclasses import replace

from support.hits import Spec, fingerprint_of

from shinglefold.model.seal import Seal
from shinglefold.model.values import Fingerprint

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
