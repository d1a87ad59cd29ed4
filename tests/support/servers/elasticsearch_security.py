"""An Elasticsearch that speaks https only, to clients that show a certificate, and asks who is there."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.servers.security import Door, User, certificates_in, make_certificates


@dataclass(frozen=True, slots=True)
class ElasticsearchSecurity:
    """Who may come; the first user may everything. ``roles`` is the text of ``roles.yml``.

    ``trial``: with what the basic licence does not have, such as document- and field-level security.
    """

    users: Sequence[User]
    roles: str
    trial: bool = False

    def set_up(self, config: Path) -> dict[str, object]:
        """Write roles and new certificates, and return the settings."""
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

    def before_start(self, home: Path, environment: Mapping[str, str]) -> None:
        """Add users with the distribution's own tool."""
        tool = str(home / "bin" / "elasticsearch-users")
        for user in self.users:
            arguments = ["useradd", user.name, "-p", user.password, "-r", user.role]
            run = subprocess.run(
                [tool, *arguments], env=environment, check=False, capture_output=True, text=True
            )
            assert run.returncode == 0, run.stdout + run.stderr

    def after_start(self, ask: Callable[[str, str, Any], Any]) -> None:
        """Begin the trial of the distribution's own features; all users are there already."""
        if self.trial:
            told = ask("POST", "/_license/start_trial?acknowledge=true", None)
            assert told["trial_was_started"], told

    def door(self, config: Path) -> Door:
        """Return the first user's way in."""
        made = certificates_in(config)
        return Door(self.users[0], made.context(made.client))
