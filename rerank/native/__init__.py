"""Search by groups: the engine's own ``collapse`` on the numbers of groups that documents carry."""

from shinglefold.rerank.native.page import Target, native_page
from shinglefold.rerank.native.ready import Grouped

__all__ = ["Grouped", "Target", "native_page"]
