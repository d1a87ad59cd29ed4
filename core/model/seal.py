"""The seal: a keyed hash stored with a fingerprint, so that nobody can forge one without the key."""

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from hmac import compare_digest

from shinglefold.errors import ConfigError
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_type

#: The least bytes of a key, and the bytes of a seal.
_SHORTEST, _SIZE = 16, 12
_PERSON = b"shinglefold seal"
#: The number of dots between scheme, language, shingles and digest; with more a head would be ambiguous.
_DOTS = 3
_VARIABLE = "SHINGLEFOLD_SEAL_KEY"
_MADE = "make one with: python -c 'import secrets; print(secrets.token_hex(32))'"


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals fingerprints with a key, and verifies seals.

    A seal covers scheme, language, shingles, digest and signature, which searches compare. It depends on
    nothing else, so equal texts have equal fingerprints, sealed or not.

    Attributes:
        key: at least 16 bytes; no message shows it.
        id: 8 hex digits that identify the key.
    """

    key: bytes = field(repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes):
            # The value is not quoted: it may be the key.
            raise ConfigError("a seal's key is bytes; Seal.parse takes it as text")
        if len(self.key) < _SHORTEST:
            raise ConfigError(
                f"a seal's key needs {_SHORTEST} bytes or more, this one has {len(self.key)}; {_MADE}"
            )
        # Hashed to the length that the keyed hash takes.
        object.__setattr__(self, "key", blake2b(self.key, digest_size=32, person=b"shinglefold key").digest())
        made = blake2b(key=self.key, digest_size=4, person=b"shinglefold id").hexdigest()
        object.__setattr__(self, "id", made)

    @classmethod
    def parse(cls, text: str) -> "Seal":
        """Return the seal of a key in the form of settings: ``hex:…``, ``base64:…``, or any other text.

        Raises:
            ConfigError: the key is too short or malformed; the message does not quote it.
        """
        form, colon, rest = text.strip().partition(":")
        try:
            if colon and form == "hex":
                return cls(bytes.fromhex(rest))
            if colon and form == "base64":
                return cls(a2b_base64(rest.encode("ascii"), strict_mode=True))
            return cls(text.strip().encode())
        except (ValueError, NotBase64):
            # The cause would quote the key, so it is left out.
            raise ConfigError(f"the seal's key is not valid {form if colon else 'text'}; {_MADE}") from None

    def of(self, head: str, signature: bytes) -> bytes:
        """Return the seal of a fingerprint in base64, as it is stored.

        Args:
            head: scheme, language, shingles and digest with dots between them.
        """
        made = self.start()
        made.update(head.encode() + b".")
        made.update(signature)
        return b2a_base64(made.digest(), newline=False)

    def start(self) -> blake2b:
        """Return a keyed hash object; the caller feeds it a head, a dot and a signature."""
        return blake2b(key=self.key, digest_size=_SIZE, person=_PERSON)

    def sealed(self, made: Fingerprint) -> Fingerprint:
        """Return a fingerprint with its seal."""
        return replace(made, seal=self.of(made.head, made.signature).decode("ascii"))

    def fits(self, stored: Fingerprint) -> bool:
        """Return whether a fingerprint has the seal of this key."""
        return self.holds(stored.head, stored.signature, stored.seal)

    def holds(self, head: str, signature: bytes, seal: str) -> bool:
        """Return whether this is the seal of a head and a signature. Cost: 2 µs."""
        if head.count(".") != _DOTS:
            return False
        try:
            return compare_digest(self.of(head, signature), seal.encode())
        except UnicodeEncodeError:
            return False


def check_seal(seal: object) -> None:
    """Raise ``ConfigError`` unless it is a seal, or None."""
    check_type("seal", seal, Seal, "Seal(key) (from shinglefold.model.seal), or None", optional=True)


def check_sealed(found: str, seal: Seal | None, where: str) -> None:
    """Check that a seal has the key with which an index is sealed.

    Args:
        found: the id of the index's key; empty if the index is not sealed.
        seal: the given seal, or None.
        where: the index, for the message.

    Raises:
        ConfigError: the keys differ, or only one side is sealed.
    """
    given = "" if seal is None else seal.id
    if found == given:
        return
    if not found:
        raise ConfigError(
            f"{where} is not sealed, but a seal is given (key {given}). "
            "Seal it (setup --seal, then backfill), or give no seal."
        )
    what = f"the one given is {given}" if given else "none is given"
    raise ConfigError(
        f"{where} is sealed with the key {found}, and {what}. Set {_VARIABLE} (or seal_key in the settings "
        f"file) to the key it was made with, or in Python give seal=Seal.parse(…)."
    )
