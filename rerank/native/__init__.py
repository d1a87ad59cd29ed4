"""Search by groups: the engine's own ``collapse`` on the numbers of groups that documents carry."""

from shinglefold.rerank.native.page import NativeTarget, native_page
from shinglefold.rerank.native.ready import GroupCoverage

__all__ = ["GroupCoverage", "NativeTarget", "native_page"]
