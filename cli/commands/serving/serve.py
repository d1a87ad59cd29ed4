"""``shinglefold serve INDEX``: pages to look at an index in a browser."""

import webbrowser
from threading import Timer

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import flush_output, write_json, write_line
from shinglefold.cli.options.definitions import admin_token_option, engine_option, listen_option
from shinglefold.errors import MissingExtra

#: Seconds until the browser is opened.
_SOON = 0.5
#: Seconds that running requests may take after the signal to end.
_STOP_SECONDS = 2


@command(
    examples="""
    shinglefold serve pages
    shinglefold serve pages --open
    shinglefold serve articles --listen 127.0.0.1:9000
    """
)
@click.argument("index", metavar="INDEX")
@engine_option
@listen_option("127.0.0.1:8471")
@admin_token_option("Password that browsers must give, with any user name; needed beyond loopback.")
@click.option("--open", "open_it", is_flag=True, help="Open the pages in the browser.")
@click.pass_obj
def serve(
    invocation: Invocation,
    /,
    *,
    index: str,
    engine: str | None,
    listen: str,
    admin_token: str,
    open_it: bool,
) -> int:
    """Show in a browser what folds in an INDEX, and why.

    Searches stand there before and after folding. Listens on this machine only, until it is interrupted.
    Browsers never reach the engine, and no page changes anything.
    """
    try:
        from shinglefold.gateway.http.server import serve as run
        from shinglefold.gateway.pages import pages_app
    except ImportError as error:
        raise MissingExtra("gateway", "serve") from error
    from shinglefold.api.folded_index import FoldedIndex
    from shinglefold.cli.session.open_index import open_store, seal_of_index
    from shinglefold.gateway.access import Listener, check_pages_access

    target = invocation.target(index, engine)
    with Listener(listen) as listener, open_store(target) as store:
        check_pages_access(listener.is_loopback, admin_token)
        # It says whether the setting fits the index, and what to do if not.
        seal_of_index(target, store.recipe)
        opened = FoldedIndex(store.engine, index, store.recipe, settings=target.settings)

        def started() -> None:
            address = listener.browser_address
            if invocation.json:
                write_json({"address": address})
            else:
                write_line(f"{index} is shown at {address} until Ctrl-C is pressed")
            flush_output()
            if open_it:
                Timer(_SOON, webbrowser.open, (address,)).start()

        app = pages_app(opened, token=admin_token, complete=target.hints.complete)
        run(app, listener, started, stop_seconds=_STOP_SECONDS)
    return DONE
