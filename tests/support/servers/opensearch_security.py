"""An OpenSearch with its security plugin: https, users by name or certificate, rights by field."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.servers.admin import until
from support.servers.security import Door, User, certificates_in, distinguished, make_certificates

#: Users by name and password, or by the common name of the certificate they show.
_AUTHENTICATION = {
    "by_certificate": {
        "http_enabled": True,
        "order": 0,
        "http_authenticator": {
            "type": "clientcert",
            "challenge": False,
            "config": {"username_attribute": "cn"},
        },
        "authentication_backend": {"type": "noop"},
    },
    "by_name": {
        "http_enabled": True,
        "order": 1,
        "http_authenticator": {"type": "basic", "challenge": True},
        "authentication_backend": {"type": "intern"},
    },
}


@dataclass(frozen=True, slots=True)
class OpenSearchSecurity:
    """Who may come, with which roles (as ``_plugins/_security/api/roles`` takes them).

    The administrator shows the certificate ``admin``. A user without a password shows the one of its name.
    """

    users: Sequence[User] = ()
    roles: Mapping[str, Mapping[str, Any]] | None = None

    def set_up(self, config: Path) -> dict[str, object]:
        """Write certificates and an empty set of users, and return the settings."""
        made = make_certificates(config)
        folder = config / "opensearch-security"
        folder.mkdir()
        for kind, name in (
            ("internalusers", "internal_users"),
            ("roles", "roles"),
            ("rolesmapping", "roles_mapping"),
            ("actiongroups", "action_groups"),
            ("tenants", "tenants"),
            ("nodesdn", "nodes_dn"),
        ):
            _write(folder / f"{name}.yml", kind, {})
        dynamic = {"dynamic": {"authc": _AUTHENTICATION}}
        _write(folder / "config.yml", "config", {"config": dynamic})
        prefix = "plugins.security"
        return {
            **_tls(f"{prefix}.ssl.transport", made.server, made.server_key, made.authority),
            **_tls(f"{prefix}.ssl.http", made.server, made.server_key, made.authority),
            f"{prefix}.ssl.transport.enforce_hostname_verification": False,
            f"{prefix}.ssl.http.enabled": True,
            f"{prefix}.ssl.http.clientauth_mode": "OPTIONAL",
            f"{prefix}.authcz.admin_dn": [distinguished("admin")],
            f"{prefix}.nodes_dn": [distinguished("node")],
            f"{prefix}.allow_default_init_securityindex": True,
            f"{prefix}.restapi.password_min_length": 8,
            f"{prefix}.unsupported.restapi.allow_securityconfig_modification": True,
        }

    def after_start(self, ask: Callable[[str, str, Any], Any]) -> None:
        """Make roles and users, in one request each kind, once the plugin has read its configuration."""
        until(lambda: _is_ready(ask))
        api = "/_plugins/_security/api"
        for path, made in (
            ("roles", dict(self.roles or {})),
            (
                "internalusers",
                {user.name: {"password": user.password} for user in self.users if user.password},
            ),
            ("rolesmapping", self._mapped()),
        ):
            changes = [{"op": "add", "path": f"/{name}", "value": value} for name, value in made.items()]
            if changes:
                ask("PATCH", f"{api}/{path}", changes)

    def door(self, config: Path) -> Door:
        """Return the way in of the certificate that may everything."""
        made = certificates_in(config)
        return Door(context=made.context(made.admin))

    def _mapped(self) -> dict[str, dict[str, list[str]]]:
        roles = dict.fromkeys(user.role for user in self.users)
        return {role: {"users": [user.name for user in self.users if user.role == role]} for role in roles}


def _is_ready(ask: Callable[[str, str, Any], Any]) -> bool:
    try:
        return bool(ask("GET", "/_plugins/_security/health", None)["status"] == "UP")
    except OSError:
        return False


def _tls(prefix: str, certificate: Path, key: Path, authority: Path) -> dict[str, str]:
    # The plugin takes paths below the configuration's folder only.
    return {
        f"{prefix}.pemcert_filepath": certificate.name,
        f"{prefix}.pemkey_filepath": key.name,
        f"{prefix}.pemtrustedcas_filepath": authority.name,
    }


def _write(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write a file of the plugin's; JSON is YAML."""
    path.write_text(json.dumps({"_meta": {"type": kind, "config_version": 2}, **content}))
