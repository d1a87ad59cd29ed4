"""A gateway over HTTP: an ASGI application in front of a cluster that folds searches and signs writes.

``gateway_app`` makes the application; ``serve`` runs it.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.gateway.http.app import gateway_app
    from shinglefold.gateway.http.server import serve

__all__ = ["gateway_app", "serve"]

__getattr__ = lazy_attributes(
    __name__,
    {".app": "gateway_app", ".server": "serve"},
)
