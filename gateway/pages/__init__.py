"""Pages that show an index in a browser: ``pages_app``, an ASGI application."""

from shinglefold.gateway.pages.application import pages_app

__all__ = ["pages_app"]
