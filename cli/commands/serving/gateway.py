"""``shinglefold gateway``: serve a cluster's REST API, with folded searches and signed writes."""

import ipaddress
from dataclasses import replace

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import flush_output, write_json, write_line
from shinglefold.cli.options.definitions import NumberRange, workers_option
from shinglefold.errors import ConfigError


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
@click.option(
    "--listen", default="127.0.0.1:9201", show_default=True, metavar="HOST:PORT", help="Where to listen."
)
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
@click.option(
    "--admin-token",
    envvar="SHINGLEFOLD_ADMIN_TOKEN",
    metavar="TOKEN",
    help="Token for metrics and sign; by default SHINGLEFOLD_ADMIN_TOKEN, else they are open to loopback.",
)
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
    admin_token: str | None,
) -> int:
    """Fold searches and sign writes in front of a cluster.

    Clients in any language use this address instead of the cluster's, with their own credentials. Searches
    with ext.dedup are folded, writes to indices that were set up get fingerprints, all else is forwarded
    unchanged. SIGTERM lets running requests end.
    """
    from shinglefold.gateway.http import gateway_app, serve
    from shinglefold.gateway.http.server import ListenOptions
    from shinglefold.gateway.http.upstream import upstream_connection
    from shinglefold.ingest.writing.worker_pool import cores

    if key and not certificate:
        raise ConfigError("--key: give its certificate, too: --certificate FILE")
    settings = invocation.settings()
    host, port = _host_and_port(listen)
    connection = upstream_connection(upstream)
    if ca_certificate:
        connection = replace(connection, ca_file=ca_certificate)
    if insecure:
        connection = replace(connection, verify=False)
    processes = (settings.workers if workers is None else workers) or cores()
    app = gateway_app(
        connection,
        always=always,
        settings=settings,
        most_bytes=max_body * 1024 * 1024,
        connect_seconds=connect_timeout,
        read_seconds=read_timeout,
        signers=processes,
        admin_token=admin_token or None,
        admin_open=_is_loopback(host),
    )

    def started(address: str) -> None:
        if invocation.json:
            write_json({"address": address, "upstream": list(connection.urls)})
        else:
            write_line(f"gateway at {address} in front of {connection.address}")
        flush_output()

    serve(app, ListenOptions(host, port, certificate, key, stop_timeout), started)
    return DONE


def _host_and_port(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"--listen: expected HOST:PORT, such as 127.0.0.1:9201, got {listen!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
