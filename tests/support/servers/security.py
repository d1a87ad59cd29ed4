"""An Elasticsearch that speaks https only, to clients that show a certificate, and asks who is there."""

import ssl
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class User:
    """A user, with one role."""

    name: str
    password: str
    role: str


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files; ``client`` holds certificate and key, ``stranger`` is an authority nobody trusts."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    stranger: Path

    def context(self) -> ssl.SSLContext:
        """Return what a client needs to be let in."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.client)
        return context


@dataclass(frozen=True, slots=True)
class Security:
    """Who may come; the first user may everything. ``roles`` is the text of ``roles.yml``."""

    users: Sequence[User]
    roles: str

    def set_up(self, config: Path) -> dict[str, object]:
        """Write roles and new certificates into a server's configuration, and return its settings."""
        (config / "roles.yml").write_text(self.roles)
        made = _make_certificates(config)
        prefix = "xpack.security.http.ssl"
        return {
            "xpack.security.enabled": True,
            "xpack.security.transport.ssl.enabled": False,
            f"{prefix}.enabled": True,
            f"{prefix}.certificate": str(made.server),
            f"{prefix}.key": str(made.server_key),
            f"{prefix}.certificate_authorities": [str(made.authority)],
            f"{prefix}.client_authentication": "required",
        }


def add_users(users: Sequence[User], home: Path, environment: Mapping[str, str]) -> None:
    """Add users with the distribution's own tool."""
    tool = str(home / "bin" / "elasticsearch-users")
    for user in users:
        arguments = ["useradd", user.name, "-p", user.password, "-r", user.role]
        run = subprocess.run([tool, *arguments], env=environment, check=False, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


def certificates_in(folder: Path) -> Certificates:
    """Return the certificates of a server's configuration."""
    return Certificates(
        *(folder / f"{name}.pem" for name in ("authority", "server", "server-key", "client", "stranger"))
    )


def _make_certificates(folder: Path) -> Certificates:
    made = certificates_in(folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(made.authority))
    trustme.CA().cert_pem.write_to_path(str(made.stranger))
    server = authority.issue_cert("127.0.0.1", "localhost")
    server.cert_chain_pems[0].write_to_path(str(made.server))
    server.private_key_pem.write_to_path(str(made.server_key))
    client = authority.issue_cert("tests@example.org")
    client.private_key_and_cert_chain_pem.write_to_path(str(made.client))
    return made
