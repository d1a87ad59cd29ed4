"""An Elasticsearch that speaks https only, to clients that show a certificate, and asks who is there."""

import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.servers.security import Door, User, certificates_in, make_certificates

#: The least that the server takes for a hash.
_ROUNDS = 1_000


@dataclass(frozen=True, slots=True)
class ElasticsearchSecurity:
    """Who may come; the first user may everything. ``roles`` is the text of ``roles.yml``.

    ``trial``: with what the basic licence does not have, such as document- and field-level security.
    """

    users: Sequence[User]
    roles: str
    trial: bool = False

    def set_up(self, config: Path) -> dict[str, object]:
        """Write users, roles and new certificates, and return the settings.

        The distribution's own tool for users starts a Java for each of them.
        """
        (config / "users").write_text("".join(f"{one.name}:{_hash(one.password)}\n" for one in self.users))
        (config / "users_roles").write_text("".join(f"{one.role}:{one.name}\n" for one in self.users))
        (config / "roles.yml").write_text(self.roles)
        made = make_certificates(config)
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

    def after_start(self, ask: Callable[[str, str, Any], Any]) -> None:
        """Begin the trial of the distribution's own features; all users are there already."""
        if self.trial:
            told = ask("POST", "/_license/start_trial?acknowledge=true", None)
            assert told["trial_was_started"], told

    def door(self, config: Path) -> Door:
        """Return the first user's way in."""
        made = certificates_in(config)
        return Door(self.users[0], made.context(made.client))


def _hash(password: str) -> str:
    """Return a password as the server keeps it."""
    salt = os.urandom(32)
    made = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS, 32)
    return f"{{PBKDF2}}{_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(made).decode()}"
