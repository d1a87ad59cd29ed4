"""Native search: the engine's own ``collapse`` on stored group numbers."""

from shinglefold.rerank.native.group_coverage import GroupCoverage
from shinglefold.rerank.native.page import NativeTarget, native_page

__all__ = ["GroupCoverage", "NativeTarget", "native_page"]
