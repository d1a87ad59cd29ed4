"""``shinglefold serve INDEX``: pages to look at an index in a browser."""

import socket
import webbrowser
from threading import Timer
from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import flush_output, write_json, write_line
from shinglefold.cli.options.definitions import engine_option
from shinglefold.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from starlette.applications import Starlette

_PORT = 8471
#: The most bytes of an address: two texts to compare stand in it.
_LONGEST = 1 << 20
#: Seconds until the browser is opened.
_SOON = 0.5


@command(
    examples="""
    shinglefold serve pages
    shinglefold serve pages --open
    shinglefold serve articles --port 9000
    """
)
@click.argument("index", metavar="INDEX")
@engine_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen at."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="Port to listen at; 0 takes a free one.",
)
@click.option(
    "--admin-token",
    default="",
    metavar="TOKEN",
    envvar="SHINGLEFOLD_ADMIN_TOKEN",
    help="Password that browsers must give, with any user name; needed to listen at other addresses than "
    "those of this machine.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the pages in the browser.")
@click.pass_obj
def serve(
    invocation: Invocation,
    /,
    *,
    index: str,
    engine: str | None,
    host: str,
    port: int,
    admin_token: str,
    open_it: bool,
) -> int:
    """Show in a browser what folds in an INDEX, and why.

    Searches stand there before and after folding. Listens on this machine only, until it is interrupted.
    Browsers never reach the engine, and no page changes anything.
    """
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("gateway", "serve") from error
    from shinglefold.api import FoldedIndex
    from shinglefold.cli.session.open_index import open_store, seal_of_index
    from shinglefold.gateway.pages import pages_app
    from shinglefold.gateway.pages.guard import LOOPBACK

    is_local = host in LOOPBACK
    if not is_local and not admin_token:
        raise ConfigError(
            f"--host {host}: others could read the whole index there. Add --admin-token TOKEN, a password "
            "that browsers must give"
        )
    target = invocation.target(index, engine)
    with open_store(target) as store:
        # It says whether the setting fits the index, and what to do if not.
        seal_of_index(target, store.recipe)
        opened = FoldedIndex(store.engine, index, store.recipe, settings=target.settings)
        with _listen(host, port) as listening:
            address = f"http://{_written(host)}:{listening.getsockname()[1]}/"
            if invocation.json:
                write_json({"address": address})
            else:
                write_line(f"{index} is shown at {address} until Ctrl-C is pressed")
            flush_output()
            if open_it:
                Timer(_SOON, webbrowser.open, (address,)).start()
            hosts = LOOPBACK if is_local else None
            complete = target.hints.complete
            _run(pages_app(opened, hosts=hosts, token=admin_token, complete=complete), listening)
    return DONE


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigError: the address is taken, or is none of this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {_written(host)}:{port}: {error.strerror or error}. "
            "Choose another port: --port 0 takes a free one"
        ) from error


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _run(app: "Starlette", listening: socket.socket) -> None:
    import uvicorn

    options = uvicorn.Config(
        app,
        http="h11",
        h11_max_incomplete_event_size=_LONGEST,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(options).run(sockets=[listening])
