"""How to reach a server: addresses, credentials, clients. Secrets never show in ``repr`` or errors."""

import base64
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from shinglefold.errors import ConfigError, nearest
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_int,
    check_number,
    check_str,
    expected,
)
from shinglefold.settings import (
    check_toml_type,
    field_types,
    parse_variable,
    prefixed_variables,
    read_secret,
    read_table,
)

if TYPE_CHECKING:
    import asyncio

PRODUCTS = ("opensearch", "elasticsearch")
_SCHEMES = ("http", "https")
#: The fields whose values are never printed.
SECRETS = ("password", "api_key", "bearer_token")
_TEXTS = (*SECRETS, "product", "user", "client_cert", "client_key", "ca_file", "aws_region", "aws_service")
#: The characters of keys and tokens.
_TOKEN = re.compile(r"[!-~]*")
#: The comma between two addresses; any other comma may belong to a password.
_SEPARATOR = re.compile(r",\s*(?=[A-Za-z+]{1,40}://)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*$")
#: ``scheme://…``, ``//host``, ``user:password@host`` and ``host:port``.
_SERVER_LIKE = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://|//|[^/\s]*:[^/\s]*@|[\w.-]+:\d{1,5}(/|,|$)|\[[0-9a-fA-F:.]+\]"
)
#: Several hosts after one scheme and its credentials: ``https://user:password@a,b``.
_HOST = r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?(/[^\s,@]*)?"
_ANOTHER = re.compile(r",\s*(\[|[\w.-]+:\d)")
_HOSTS = re.compile(
    rf"(?P<scheme>[A-Za-z+]{{1,40}}://)?(?P<who>.*@)?(?P<hosts>{_HOST}(,\s*{_HOST})+/?)$", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Connection:
    """The addresses of a cluster and the credentials for it.

    Give at most one kind of credentials: user and password, an API key, a bearer token, or an AWS region.
    With a region, requests are signed with the credentials that botocore finds. A client certificate may be
    added to each kind.

    Args:
        urls: ``http(s)://host:port/prefix`` without credentials; ``parse_urls`` separates those.
        product: ``opensearch`` or ``elasticsearch``; if empty, it is detected.
        api_key: as the server gave it (encoded), or ``id:key``.
        client_key: the key of the client certificate, if it is in a separate file.
        ca_file: the private authority that signed the server's certificate.
        verify: whether the server's certificate is checked; turn it off for experiments only.
        aws_service: ``es``, or ``aoss`` for OpenSearch Serverless.
        timeout: seconds for one request.
        retries: how often a request is repeated while the server is busy or silent.
        max_connections: how many connections are kept open to a node, and how many requests are sent at a
            time. Further ones wait in order, at most ``timeout`` seconds.

    Raises:
        ConfigError: the addresses or credentials are not valid.
    """

    urls: tuple[str, ...]
    product: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)
    client_cert: str = ""
    client_key: str = ""
    ca_file: str = ""
    verify: bool = True
    aws_region: str = ""
    aws_service: str = "es"
    timeout: float = 30.0
    retries: int = 3
    max_connections: int = 64

    def __post_init__(self) -> None:
        self._check_types()
        if not self.urls:
            raise ConfigError("no address of a server; give one, such as http://localhost:9200")
        for url in self.urls:
            _check_url(url)
        if self.product:
            check_choice("product", self.product, PRODUCTS)
        if bool(self.user) != bool(self.password):
            raise ConfigError("user and password belong together: give both, or neither")
        if len(given := self._credentials()) > 1:
            raise ConfigError(f"give one of {' and '.join(given)}, not {len(given)}")
        if self.client_key and not self.client_cert:
            raise ConfigError("client_key without client_cert: give the certificate too")
        if self.aws_region and self.product == "elasticsearch":
            raise ConfigError("aws_region: only OpenSearch takes signed requests")
        self._check_credentials()
        # Locks and sockets reject numbers that are too large.
        check_number("timeout (seconds)", self.timeout, high=1_000_000, above=True)
        check_int("retries", self.retries)
        check_int("max_connections", self.max_connections, 1)

    @property
    def address(self) -> str:
        """The addresses as messages show them."""
        return ", ".join(self.urls)

    def authorization(self) -> str:
        """Return the value of the ``Authorization`` header; empty if there is none, or AWS signs."""
        if self.user:
            return f"Basic {_base64(f'{self.user}:{self.password}')}"
        if self.api_key:
            return f"ApiKey {_base64(self.api_key) if ':' in self.api_key else self.api_key}"
        return f"Bearer {self.bearer_token}" if self.bearer_token else ""

    def _check_types(self) -> None:
        if isinstance(self.urls, str | bytes) or not isinstance(self.urls, Iterable):
            raise ConfigError("urls: expected a list of addresses; load_connection(address) takes one")
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str):
                # Not quoted: it may be a secret.
                raise ConfigError(f"{name}: expected text, got {type(getattr(self, name)).__name__}")
        check_bool("verify", self.verify)

    def _check_credentials(self) -> None:
        """Check that headers can have them: the clients' errors would show the secret."""
        for name in ("api_key", "bearer_token"):
            value = getattr(self, name)
            if not _TOKEN.fullmatch(value) and not (name == "api_key" and ":" in value):
                raise ConfigError(
                    f"{name} has a character that no key has, such as a space or a line's end: copy it again"
                )

    def _credentials(self) -> list[str]:
        ways = {
            "user": self.user,
            "api_key": self.api_key,
            "bearer_token": self.bearer_token,
            "aws_region": self.aws_region,
        }
        return [name for name, value in ways.items() if value]


def parse_urls(given: str | Iterable[str]) -> dict[str, object]:
    """Return the fields that addresses contain: urls, and if they name them product, user and password.

    Args:
        given: one address or several (a text with commas, or a sequence). ``opensearch+https://…`` names
            the product, ``https://user:password@…`` the credentials, percent-encoded if necessary.

    Raises:
        ConfigError: one is not an address, or two of them name different users or products.
    """
    fields: dict[str, object] = {}
    urls = []
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise expected("address", "one, or a list of them", given)
    for text in _SEPARATOR.split(given) if isinstance(given, str) else given:
        parts = _split(text.strip())
        product, plus, scheme = parts.scheme.rpartition("+")
        own: dict[str, object] = {"product": product} if plus else {}
        if parts.username is not None:
            own |= {"user": unquote(parts.username), "password": unquote(parts.password or "")}
        if other := [name for name, value in own.items() if fields.get(name, value) != value]:
            # Not quoted: it may be a secret. Each would be sent to all of the addresses.
            raise ConfigError(
                f"several addresses are of one cluster, and these name different ones for {other[0]}: name "
                "it once"
            )
        fields |= own
        host = parts.netloc.rpartition("@")[2]
        urls.append(urlunsplit((scheme, host, parts.path.rstrip("/"), parts.query, parts.fragment)))
    return {**fields, "urls": tuple(urls)}


def each_with_scheme(given: str) -> str | None:
    """Return several addresses with their schemes, by default ``http``; None for anything else."""
    pieces = [_HOSTS.match(text.strip()) for text in _SEPARATOR.split(given)]
    if not any(pieces) or (not is_server(given) and not looks_like_server(given)):
        return None
    complete = [
        text.strip() if piece is None else _complete_hosts(piece)
        for text, piece in zip(_SEPARATOR.split(given), pieces, strict=True)
    ]
    return ",".join(complete)


def _complete_hosts(piece: re.Match[str]) -> str:
    scheme = piece["scheme"] or "http://"
    first, *others = re.split(r",\s*", piece["hosts"])
    # User and product hold for all of them, so the first one names them.
    return ",".join(
        [f"{scheme}{piece['who'] or ''}{first}", *(scheme.rpartition("+")[2] + one for one in others)]
    )


def is_server(address: str) -> bool:
    """Return whether an address names a server, not a folder."""
    check_str("address", address, empty=True)
    scheme, separator, _ = address.partition("://")
    return bool(separator) and scheme.rpartition("+")[2] in _SCHEMES


def looks_like_server(address: str) -> bool:
    """Return whether an address that names no server looks like a mistyped one of a server."""
    return bool(_SERVER_LIKE.match(address))


def printable_address(address: str) -> str:
    """Return an address as messages may show it: without credentials, query and fragment."""
    scheme, separator, _ = address.partition("://")
    # Whatever is before the last @ may be a password.
    _, at, host = address.rpartition("@")
    text = f"{scheme}{separator}{host}" if at and separator and _SCHEME.match(scheme) else host
    return re.split(r"[?#]", text, maxsplit=1)[0]


def without_secrets(where: str) -> str:
    """Return the address of a server as ``printable_address`` does, and a folder unchanged."""
    return printable_address(where) if is_server(where) or looks_like_server(where) else where


def _check_url(url: str) -> None:
    parts = _split(url)
    if "@" in parts.netloc:
        raise ConfigError("credentials in the address: give them as user and password")
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment:
        raise _not_an_address(url)
    if not parts.path.isascii():
        meant = urlunsplit(parts._replace(path=quote(parts.path, safe="/%")))
        raise ConfigError(
            f"{printable_address(url)!r}: a path must be percent-encoded, as in {printable_address(meant)}"
        )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        raise _not_an_address(url) from None
    host = parts.netloc.rpartition("@")[2]
    if "," in host or not host.isprintable() or _ANOTHER.search(parts.path):
        raise _not_an_address(url)
    return parts


def _not_an_address(url: str) -> ConfigError:
    if meant := each_with_scheme(url):
        return ConfigError(
            f"{printable_address(url)!r} is not the address of a server; write several each with its scheme: "
            f"{printable_address(meant)}"
        )
    return ConfigError(
        f"{printable_address(url)!r} is not the address of a server; expected http(s)://host:port (in a "
        "password before it, characters such as / # @ must be percent-encoded)"
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_PREFIX = "SHINGLEFOLD_ENGINE_"
#: The least similarity of a mistyped variable. A cluster may set others of this prefix.
_ALIKE = 0.8


def load_connection(
    urls: str | Iterable[str] | None = None,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Return the connection of a file, the environment and the given address; the later ones win.

    The file is TOML, with the names of ``Connection`` as keys and ``url`` (one or a list) for the addresses.
    A variable is ``SHINGLEFOLD_ENGINE_`` and the name in upper case; ``SHINGLEFOLD_ENGINE_FILE`` names the
    file. In both, ``password_file``, ``api_key_file`` and ``bearer_token_file`` name files that contain only
    the secret. Credentials are sent to the address that wins.

    Raises:
        ConfigError: a key or a value is not valid, or a file can't be read.
    """
    named = prefixed_variables(_PREFIX, os.environ if environ is None else environ)
    file = file or named.pop("file", None)
    named.pop("file", None)
    values = _fields_of(read_table(file, "connection file", secret=True), f"{file}") if file else {}
    values |= _fields_of({name: _parse(name, text) for name, text in named.items()}, "environment")
    if urls is not None:
        values |= parse_urls(urls)
    return Connection(**{"urls": (), **values})


def named_addresses(environ: Mapping[str, str] | None = None) -> str:
    """Return the addresses that the environment or its file names, separated by commas; "" if there are none.

    Raises:
        ConfigError: see ``load_connection``.
    """
    environ = os.environ if environ is None else environ
    if not any(environ.get(f"{_PREFIX}{name}") for name in ("URL", "FILE")):
        _check_names(environ)
        return ""
    return ",".join(load_connection(environ=environ).urls)


def _check_names(environ: Mapping[str, str]) -> None:
    """Check that no variable is a mistyped one of a connection: then no server would be used, silently."""
    known = ("url", "file", *_KINDS, *_FILES)
    if environ.get(bare := _PREFIX.rstrip("_")):
        raise ConfigError(f"unknown variable {bare}; did you mean {_PREFIX}URL?")
    for name in prefixed_variables(_PREFIX, environ).keys() - set(known):
        if near := nearest(name, known, _ALIKE):
            raise ConfigError(
                f"unknown variable {_PREFIX}{name.upper()}; did you mean {_PREFIX}{near.upper()}?"
            )


def _fields_of(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields in a table after checking their types; errors do not quote values."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "url":
            values |= parse_urls(value)
        elif name in _FILES:
            values[_FILES[name]] = read_secret(name, value)
        elif name in _KINDS:
            values[name] = check_toml_type(f"{name} ({where})", value, _KINDS[name], secret=True)
        else:
            raise ConfigError.unknown(f"key of a connection ({where})", name, ["url", *_KINDS, *_FILES])
    return values


def _parse(name: str, text: str) -> object:
    return parse_variable(f"{_PREFIX}{name.upper()}", text, _KINDS.get(name, str))


_KINDS = field_types(Connection, "urls")
_FILES: Mapping[str, str] = MappingProxyType({f"{name}_file": name for name in SECRETS})

#: The packages of the clients, each with the product it is for.
_PACKAGES = {"opensearchpy": "opensearch", "elasticsearch": "elasticsearch"}


def product_of_client(given: object) -> str:
    """Return the product that a client is for; "" for anything that is not a client."""
    for kind in type(given).__mro__:
        product = _PACKAGES.get(kind.__module__.partition(".")[0], "")
        if product and hasattr(given, "indices"):
            return product
    return given.product if isinstance(given, WrappedClient) else ""


def plain_client(given: Any) -> Any:  # noqa: ANN401 - whatever an engine is opened with
    """Return the original client of one that ``shinglefold.fold`` made; anything else unchanged."""
    door = (
        getattr(getattr(given, "transport", None), "shinglefold_door", None)
        if product_of_client(given)
        else None
    )
    return given if door is None else door.plain(given)


def is_async_client(given: object) -> bool:
    """Return whether the methods of a client are awaited."""
    if isinstance(given, WrappedClient) or not product_of_client(given):
        return False
    # Both packages keep these clients in a module of this name. Their methods are not coroutine functions.
    return any("_async" in kind.__module__.split(".") for kind in type(given).__mro__)


class WrappedClient:
    """An asynchronous client with blocking methods, for threads other than that of its running event loop.

    Attributes that are parts of the client (``indices``, ``options()``) are wrapped the same way.
    """

    def __init__(self, client: Any, loop: "asyncio.AbstractEventLoop", product: str) -> None:  # noqa: ANN401
        self._wrapped, self._loop, self.product = client, loop, product

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._wrapped, name)
        if callable(found) and not inspect.isclass(found):
            return self._as_blocking(found)
        return self._wrap(found)

    def _as_blocking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # Imported here, because opening another engine should not take the time.
            import asyncio

            made = method(*args, **kwargs)
            if inspect.isawaitable(made):
                return asyncio.run_coroutine_threadsafe(_await_result(made), self._loop).result()
            return self._wrap(made)

        return call

    def _wrap(self, found: Any) -> Any:  # noqa: ANN401
        is_part = type(found).__module__.partition(".")[0] in _PACKAGES and hasattr(found, "transport")
        return WrappedClient(found, self._loop, self.product) if is_part else found


async def _await_result(given: Any) -> Any:  # noqa: ANN401
    return await given
