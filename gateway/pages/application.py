"""The pages as an ASGI application: routes, templates, the same as JSON, and errors."""

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    InputError,
    ShinglefoldError,
    suggest,
)
from shinglefold.gateway.access import AccessToken
from shinglefold.gateway.pages import compare_page, index_pages, search_page
from shinglefold.gateway.pages.guard import PageGuard
from shinglefold.gateway.pages.shared import (
    LANGUAGES,
    Messages,
    PageParameters,
    Shared,
    address,
    chosen_language,
    without_backquotes,
)

_LOGGER = logging.getLogger(__name__)
_MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: Errors by the status of the answer; the first that fits counts.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (ConfigError, 400),
    (InputError, 404),
    (IndexMissing, 404),
    (EngineUnavailable, 503),
    (EngineError, 502),
    (ShinglefoldError, 409),
)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page: its name, its parameters, and the function that makes its JSON."""

    name: str
    parameters: tuple[str, ...]
    make: Callable[[Shared, PageParameters], dict[str, Any]]

    def path(self, start: str) -> str:
        """Return its address after that of the application; ``start``: the index in it, if it has one."""
        return start or "/" if self.name == "search" else f"{start}/{self.name}"


_PAGES = (
    _Shown("search", search_page.PARAMETERS, search_page.search_json),
    _Shown("groups", index_pages.GROUPS_PARAMETERS, index_pages.groups_json),
    _Shown("compare", compare_page.PARAMETERS, compare_page.compare_json),
    _Shown("adviser", index_pages.ADVISER_PARAMETERS, index_pages.adviser_json),
    _Shown("recipe", index_pages.RECIPE_PARAMETERS, index_pages.recipe_json),
)


def pages_app(
    index: FoldedIndex,
    *,
    hosts: Collection[str] = (),
    token: str = "",
    complete: Callable[[str], str] = without_backquotes,
) -> Starlette:
    """Return an ASGI application with the pages of an index; mount it under any prefix.

    Args:
        index: stays open; the application does not close it.
        hosts: the names that a request may be addressed to without a token, beside those of loopback.
        token: what a browser must give as a password; "" for none. Without one, whoever reaches the
            application reads every document of the index.
        complete: completes the commands in a message, which are between backquotes.
    """
    shared = Shared(index, complete)
    site = _Site(lambda _: shared, complete, name=index.name)
    return site.application("", hosts, AccessToken(token))


def pages_of_all(
    find: Callable[[str], Shared],
    names: Callable[[], Sequence[str]],
    *,
    token: AccessToken,
    complete: Callable[[str], str],
) -> Starlette:
    """Return an ASGI application with the pages of each index under its name, and a list of the indices.

    Args:
        find: opens an index by its name; runs in a thread, in the context of the request, as ``names`` does.
    """
    site = _Site(find, complete, names)
    return site.application("/{index}", (), token)


class _Site:
    """The pages of one index, or of each."""

    def __init__(
        self,
        find: Callable[[str], Shared],
        complete: Callable[[str], str],
        names: Callable[[], Sequence[str]] | None = None,
        name: str = "",
    ) -> None:
        self._find, self._complete, self._listed, self._name = find, complete, names, name
        self._files = {
            one.name: one.read_bytes()
            for one in files("shinglefold.gateway.pages").joinpath("static").iterdir()
            if one.is_file()
        }
        self._version = hashlib.sha256(b"".join(self._files.values())).hexdigest()[:8]

    def application(self, start: str, hosts: Collection[str], token: AccessToken) -> Starlette:
        """Return the application; ``start``: the part of an address that names the index, if it has one."""
        routes = [Route("/_static/{name}", self.static_file, methods=["GET"])]
        if self._listed is not None:
            routes.append(Route("/", self.list_indices, methods=["GET"]))
        routes += [Route(page.path(start), partial(self.answer, page), methods=["GET"]) for page in _PAGES]
        return Starlette(
            routes=routes,
            middleware=[Middleware(PageGuard, hosts=hosts, token=token)],
            exception_handlers={HTTPException: self.not_found},
        )

    @cached_property
    def _templates(self) -> Environment:
        folder = files("shinglefold.gateway.pages").joinpath("templates")
        return Environment(
            loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    # Starlette calls it in a thread, because it is no coroutine.
    def answer(self, page: _Shown, request: Request) -> Response:
        """Answer a request for a page."""

        def make() -> dict[str, Any]:
            given = PageParameters(request.query_params, page.parameters)
            shared = self._find(_index_of(request))
            return {"index": shared.index.name, **page.make(shared, given)}

        return self._respond(request, page.name, make)

    def list_indices(self, request: Request) -> Response:
        """Answer a request for the list of indices, or redirect to the pages of the index that it names."""
        if name := request.query_params.get("index", "").strip():
            asked = {"lang": request.query_params.get("lang", "")}
            place = address(_place_of(_base(request), name), asked)
            return Response(status_code=303, headers={"location": place})

        def make() -> dict[str, Any]:
            PageParameters(request.query_params, ("index",))
            setup = self._complete(suggest("setup", "INDEX"))
            return {
                "index": "",
                "indices": self._listed() if self._listed is not None else (),
                "setup": setup,
            }

        return self._respond(request, "indices", make)

    def _respond(self, request: Request, page: str, make: Callable[[], dict[str, Any]]) -> Response:
        try:
            return self._render(request, page, make())
        except ShinglefoldError as error:
            status = next(status for kind, status in _STATUS if isinstance(error, kind))
            return self._error(request, page, status, type(error).__name__, str(error))
        except Exception:
            _LOGGER.exception("the page %s failed", page)
            message = "this page failed; the log of shinglefold has the reason"
            return self._error(request, page, 500, "InternalError", message)

    def static_file(self, request: Request) -> Response:
        """Answer a request for the stylesheet, the script or the icon."""
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        media = _MEDIA[name.rpartition(".")[2]]
        headers = {"cache-control": "public, max-age=86400"}
        return Response(self._files[name], media_type=media, headers=headers)

    def not_found(self, request: Request, error: Exception) -> Response:
        """Answer a request for an address that no page has."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        start = "/INDEX" if self._listed is not None else ""
        known = ", ".join(f"{_base(request)}{one.path(start)}" for one in _PAGES)
        message = f"there is no page {request.url.path}; the pages are {known}"
        return self._error(request, "", status, "NotFound", message)

    def _error(self, request: Request, page: str, status: int, kind: str, message: str) -> Response:
        error = {"type": kind, "message": self._complete(message)}
        made = {"index": _index_of(request) or self._name, "error": error}
        return self._render(request, page, made, status)

    def _render(self, request: Request, page: str, made: Mapping[str, Any], status: int = 200) -> Response:
        """Return what a page shows as JSON or HTML, as the request asks for it."""
        headers = {"vary": "accept, accept-language"}
        if _wants_json(request):
            text = json.dumps(made, default=asdict, indent=1)
            return Response(text, status, headers, "application/json")
        template = self._templates.get_template("error.html" if "error" in made else f"{page}.html")
        text = template.render(made, **self._names(request, page))
        # A stored text may have half a surrogate pair, which UTF-8 can't have.
        return Response(text.encode("utf-8", "replace"), status, headers, "text/html")

    def _names(self, request: Request, page: str) -> dict[str, Any]:
        """Return what every template may use: messages, and addresses of pages in the chosen language."""
        base, index = _base(request), _index_of(request)
        start = _place_of("", index) if index else ""
        given = dict(request.query_params)
        asked = given.get("lang", "")
        asked = asked if asked in LANGUAGES else ""
        messages = Messages(chosen_language(asked, request.headers.get("accept-language", "")))
        paths = {"indices": f"{base}/"} if self._listed is not None else {}
        if index or self._listed is None:
            paths |= {one.name: f"{base}{one.path(start)}" for one in _PAGES}

        def to(name: str, **parameters: object) -> str:
            return address(paths[name], {**parameters, "lang": asked})

        def again(**parameters: object) -> str:
            return address(paths.get(page, base or "/"), {**given, **parameters})

        return {
            "t": messages,
            "lang": messages.language,
            "asked": asked,
            "languages": LANGUAGES,
            "page": page,
            "pages": list(paths),
            "paths": paths,
            "to": to,
            "again": again,
            "of": lambda name: address(_place_of(base, name), {"lang": asked}),
            "given": given,
            "static": lambda name: f"{base}/_static/{name}?{self._version}",
        }


def _base(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _place_of(base: str, index: str) -> str:
    return f"{base}/{quote(index, safe='')}"


def _index_of(request: Request) -> str:
    return str(request.path_params.get("index", ""))


def _wants_json(request: Request) -> bool:
    wanted = request.query_params.get("format", "")
    if wanted:
        return wanted == "json"
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted
