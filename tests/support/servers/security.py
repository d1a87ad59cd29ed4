"""What servers that ask who is there share: users, certificates, how an administrator gets in."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True, slots=True)
class User:
    """A user, with one role."""

    name: str
    password: str
    role: str


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files; ``client`` and ``admin`` hold certificate and key, ``stranger`` is nobody's authority."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    admin: Path
    stranger: Path

    def context(self, client: Path | None = None) -> ssl.SSLContext:
        """Return what a client with a certificate, or with none, needs to be let in."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if client:
            context.load_cert_chain(client)
        return context


@dataclass(frozen=True, slots=True)
class Door:
    """How a request gets in: by name, by certificate, or because nobody asks."""

    user: User | None = None
    context: ssl.SSLContext | None = None


class Security(Protocol):
    """What makes a server ask who is there."""

    def set_up(self, config: Path) -> dict[str, object]:
        """Write what belongs into a server's configuration, and return its settings."""
        ...

    def after_start(self, ask: Callable[[str, str, Any], Any]) -> None:
        """Make users and roles by asking the server."""
        ...

    def door(self, config: Path) -> Door:
        """Return how an administrator gets in."""
        ...


def certificates_in(folder: Path) -> Certificates:
    """Return the certificates of a server's configuration."""
    names = ("authority", "server", "server-key", "client", "admin", "stranger")
    return Certificates(*(folder / f"{name}.pem" for name in names))


def make_certificates(folder: Path) -> Certificates:
    """Make an authority and what it signs: the server, a client called ``tests``, an administrator."""
    made = certificates_in(folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(made.authority))
    trustme.CA().cert_pem.write_to_path(str(made.stranger))
    server = _issued(authority, "127.0.0.1", "localhost", name="node")
    server.cert_chain_pems[0].write_to_path(str(made.server))
    # OpenSearch's security plugin reads keys in this form only.
    made.server_key.write_bytes(_pkcs8(server.private_key_pem.bytes()))
    for path, name in ((made.client, "tests"), (made.admin, "admin")):
        client = _issued(authority, f"{name}@example.org", name=name)
        client.private_key_and_cert_chain_pem.write_to_path(str(path))
    return made


def distinguished(name: str) -> str:
    """Return the distinguished name of the certificate of this common name."""
    return f"CN={name},OU=tests,O=example"


def _issued(authority: trustme.CA, *identities: str, name: str) -> trustme.LeafCert:
    return authority.issue_cert(
        *identities, common_name=name, organization_unit_name="tests", organization_name="example"
    )


def _pkcs8(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
