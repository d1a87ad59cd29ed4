"""The pages of all indices behind the gateway; each request is made with the credentials of its caller."""

import asyncio
from collections import deque
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.api.opening import read_recipe
from shinglefold.contracts.engine import Engine
from shinglefold.errors import complete_commands, suggest
from shinglefold.gateway.access import AccessToken, credentials
from shinglefold.gateway.http.admin import PREFIX
from shinglefold.gateway.http.caller_engine import CALLER
from shinglefold.gateway.http.interception import GatewayParts, Interception
from shinglefold.gateway.http.messages import (
    GatewayRequest,
    HttpCaller,
    Receive,
    Sender,
    caller_headers,
)
from shinglefold.gateway.pages.application import pages_of_all
from shinglefold.gateway.pages.shared import Recent, Shared
from shinglefold.model.recipe import has_recipe
from shinglefold.rerank.index_fields import is_valid
from shinglefold.runtime.recent import RecentlyUsed

PAGES = f"{PREFIX}/pages"
#: Headers of browsers that say nothing about who sends a request, beside all that begin with ``sec-``.
_OF_BROWSER = frozenset(
    (
        *("accept", "accept-language", "cache-control", "dnt", "if-modified-since", "if-none-match"),
        *("origin", "pragma", "priority", "range", "referer", "upgrade-insecure-requests", "user-agent"),
    )
)
#: How many answers of upstream to a request are kept, to see whether it asks for credentials.
_ANSWERS = 4


@dataclass(frozen=True, slots=True)
class _Opened:
    """An index as a caller found it, and when the caller read its recipe."""

    index: FoldedIndex
    when: float


class GatewayPages:
    """Answers requests for pages; see ``shinglefold.gateway.pages``."""

    def __init__(self, parts: GatewayParts, interception: Interception, token: AccessToken) -> None:
        self._parts, self._interception, self._token = parts, interception, token
        self._recent = Recent()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened: RecentlyUsed[object, _Opened] = RecentlyUsed(64)
        self._app = pages_of_all(self._find, self._names, token=token, complete=self._complete)

    async def answer(
        self, scope: Mapping[str, Any], request: GatewayRequest, receive: Receive, send: Sender
    ) -> None:
        """Answer a request for a page."""
        own = caller_headers(request.headers)
        kept = {
            name: value
            for name, value in self._token.remove_from(own).items()
            if name not in _OF_BROWSER and not name.startswith("sec-")
        }
        caller = HttpCaller(kept, deque(maxlen=_ANSWERS))
        asks = not self._token.takes_authorization(own)

        async def send_status(message: MutableMapping[str, Any]) -> None:
            refused = caller.replies[-1].status if caller.replies else 0
            if message.get("status") == 502 and refused in (401, 403):
                # A browser sends one password only, which may be the token's already.
                message["status"] = refused if asks else 403
                if message["status"] == 401:
                    message["headers"] = [*message["headers"], (b"www-authenticate", _challenge(caller))]
            await send(dict(message))

        root = scope.get("root_path", "") + PAGES
        path = scope["path"] if request.path != PAGES else f"{root}/"
        self._loop = asyncio.get_running_loop()
        before = CALLER.set(caller)
        try:
            await self._app({**scope, "root_path": root, "path": path}, receive, send_status)
        finally:
            CALLER.reset(before)

    # What follows runs in threads, in the context of a request.

    def _find(self, name: str) -> Shared:
        reader = credentials(CALLER.get().headers)
        found = self._opened.get((name, reader))
        if found is None or not is_valid(found.when):
            when, engine = monotonic(), self._engine()
            recipe = read_recipe(engine, name, self._parts.options, suggest)
            index = None if found is None else found.index
            if index is None or (index.recipe, index.engine) != (recipe, engine):
                index = FoldedIndex(engine, name, recipe, self._parts.options, self._parts.settings)
            found = _Opened(index, when)
            self._opened.put((name, reader), found)
        return Shared(found.index, self._complete, self._recent, reader)

    def _names(self) -> Sequence[str]:
        found = self._engine().all_mappings("*")
        return sorted(name for name, mappings in found.items() if has_recipe(mappings))

    def _engine(self) -> Engine:
        """Return the engine; ask for its product if that is not known yet."""
        assert self._loop is not None
        asked = self._interception.blocking_engine(CALLER.get())
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    def _complete(self, text: str) -> str:
        urls = ",".join(self._parts.upstream.connection.urls)
        return complete_commands(text, lambda words: [*words, "--engine", urls])


def _challenge(caller: HttpCaller) -> bytes:
    """Return the ``WWW-Authenticate`` header by which upstream asks for a password."""
    asked = [value for name, value in caller.replies[-1].headers if name == b"www-authenticate"]
    return next((one for one in asked if one.lower().startswith(b"basic")), b'Basic realm="engine"')
