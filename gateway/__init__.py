"""A drop-in for the engines' own clients: searches are folded, and writes are signed, on their way.

``fold`` wraps a client, ``unfold`` returns the plain one, ``signed`` signs actions of bulks that others send.
``Interceptor`` is their core.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.gateway.bulks.actions import signed
    from shinglefold.gateway.clients import fold, unfold
    from shinglefold.gateway.interceptor import Interceptor

__all__ = ["Interceptor", "fold", "signed", "unfold"]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".bulks.actions": "signed",
        ".clients": "fold unfold",
        ".interceptor": "Interceptor",
    },
)
