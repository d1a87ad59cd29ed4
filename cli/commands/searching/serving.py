"""``shinglefold gateway`` serves a cluster's REST API, ``shinglefold serve INDEX`` pages for browsers."""

import webbrowser
from dataclasses import replace
from threading import Timer

import click

from shinglefold.cli.shared.command import DONE, Invocation, command
from shinglefold.cli.shared.definitions import (
    NumberRange,
    admin_token_option,
    engine_option,
    listen_option,
    workers_option,
)
from shinglefold.cli.shared.output import flush_output, write_json, write_line
from shinglefold.errors import ConfigError, MissingExtra


@command(
    examples="""
    shinglefold gateway --upstream http://localhost:9200
    shinglefold gateway --upstream https://a:9200 --upstream https://b:9200 --ca-certificate ca.pem --always
    shinglefold gateway --upstream http://localhost:9200 --listen 0.0.0.0:9201 --certificate tls.pem
    """
)
@click.option(
    "--upstream",
    multiple=True,
    required=True,
    metavar="URL",
    help="Address of the cluster, without credentials; repeat it for more nodes.",
)
@listen_option("127.0.0.1:9201")
@click.option(
    "--always", is_flag=True, help="Fold each search of an index that was set up, also without ext.dedup."
)
@click.option("--certificate", metavar="FILE", help="Certificate of the gateway, PEM; serves HTTPS.")
@click.option("--key", metavar="FILE", help="Key of that certificate, if it is in another file.")
@click.option("--ca-certificate", metavar="FILE", help="Authority that signed the certificate of upstream.")
@click.option("--insecure", is_flag=True, help="Do not check the certificate of upstream.")
@click.option(
    "--connect-timeout",
    type=NumberRange(0, min_open=True),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Longest wait for a connection upstream.",
)
@click.option(
    "--read-timeout",
    type=NumberRange(0, min_open=True),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Longest wait for the next bytes from upstream.",
)
@click.option(
    "--stop-timeout",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Longest wait for running requests after SIGTERM.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="MB",
    help="Largest body of a search or a write, also inflated; others have no limit.",
)
@workers_option
@admin_token_option("Token for metrics, sign and pages; without one they are open to loopback only.")
@click.option("--pages", is_flag=True, help="Show what folds in a browser, under /_shinglefold/pages.")
@click.pass_obj
def gateway(
    invocation: Invocation,
    /,
    *,
    upstream: tuple[str, ...],
    listen: str,
    always: bool,
    certificate: str | None,
    key: str | None,
    ca_certificate: str | None,
    insecure: bool,
    connect_timeout: float,
    read_timeout: float,
    stop_timeout: int,
    max_body: int,
    workers: int | None,
    admin_token: str,
    pages: bool,
) -> int:
    """Fold searches and sign writes in front of a cluster.

    Clients in any language use this address instead of the cluster's, with their own credentials. Searches
    with ext.dedup are folded, writes to indices that were set up get fingerprints, other requests are
    forwarded unchanged. SIGTERM lets running requests end.
    """
    from shinglefold.gateway.access import Listener
    from shinglefold.gateway.http import gateway_app, serve
    from shinglefold.gateway.http.upstream import upstream_connection
    from shinglefold.ingest.writing.worker_pool import cores

    if key and not certificate:
        raise ConfigError("--key: give its certificate, too: --certificate FILE")
    settings = invocation.settings()
    connection = upstream_connection(upstream)
    if ca_certificate:
        connection = replace(connection, ca_file=ca_certificate)
    if insecure:
        connection = replace(connection, verify=False)
    processes = (settings.workers if workers is None else workers) or cores()

    def report_address() -> None:
        address = listener.address("https" if certificate else "http")
        shown = f"{address}/_shinglefold/pages/" if pages else ""
        if invocation.json:
            written = {"address": address, "upstream": list(connection.urls)}
            write_json({**written, "pages": shown} if pages else written)
        else:
            write_line(f"gateway at {address} in front of {connection.address}")
            if pages:
                write_line(f"pages at {shown}")
        flush_output()

    with Listener(listen) as listener:
        app = gateway_app(
            connection,
            always=always,
            settings=settings,
            most_bytes=max_body * 1024 * 1024,
            connect_seconds=connect_timeout,
            read_seconds=read_timeout,
            signers=processes,
            admin_token=admin_token or None,
            admin_open=listener.is_loopback,
            pages=pages,
        )
        serve(app, listener, report_address, certificate=certificate, key=key, stop_seconds=stop_timeout)
    return DONE


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

    Shows searches before and after folding. Listens on this machine only, until it is interrupted.
    Browsers never reach the engine, and no page changes anything.
    """
    try:
        from shinglefold.gateway.http.server import serve as run
        from shinglefold.gateway.pages import pages_app
    except ImportError as error:
        raise MissingExtra("gateway", "serve") from error
    from shinglefold.api.folded_index import FoldedIndex
    from shinglefold.cli.shared.open_index import open_store, seal_of_index
    from shinglefold.gateway.access import Listener, check_pages_access

    target = invocation.target(index, engine)
    with Listener(listen) as listener, open_store(target) as store:
        check_pages_access(listener.is_loopback, admin_token)
        # Check that the key of the settings fits the index; errors and notes name the remedy.
        seal_of_index(target, store.recipe)
        opened = FoldedIndex(store.engine, index, store.recipe, settings=target.settings)

        def report_address() -> None:
            address = listener.browser_address
            if invocation.json:
                write_json({"address": address})
            else:
                write_line(f"{index} is shown at {address} until Ctrl-C is pressed")
            flush_output()
            if open_it:
                Timer(_SOON, webbrowser.open, (address,)).start()

        app = pages_app(opened, token=admin_token, complete=target.hints.complete)
        run(app, listener, report_address, stop_seconds=_STOP_SECONDS)
    return DONE
