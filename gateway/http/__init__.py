"""A gateway over HTTP: an ASGI application in front of a cluster that folds searches and signs writes.

``gateway_app`` makes the application; ``serve`` runs it.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.gateway.http.app import GatewayApp, gateway_app
    from shinglefold.gateway.http.server import serve

__all__ = ["GatewayApp", "gateway_app", "serve"]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".app": "GatewayApp gateway_app",
        ".server": "serve",
    },
)
