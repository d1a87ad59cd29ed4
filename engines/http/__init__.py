"""The parts that the engines for OpenSearch and Elasticsearch share."""

from shinglefold.engines.http.connection import (
    Connection,
    each_with_scheme,
    is_server,
    load_connection,
    looks_like_server,
    named_addresses,
    shown,
    without_secrets,
)

__all__ = [
    "Connection",
    "each_with_scheme",
    "is_server",
    "load_connection",
    "looks_like_server",
    "named_addresses",
    "shown",
    "without_secrets",
]
