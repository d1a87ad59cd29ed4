"""Native search: the engine's own ``collapse`` on stored group numbers."""

from shinglefold.rerank.native.page import NativeTarget, native_page
from shinglefold.rerank.native.ready import GroupCoverage

__all__ = ["GroupCoverage", "NativeTarget", "native_page"]
