"""LangChain retrievers without near-copies."""

from langchain_shinglefold.folding import ShinglefoldCompressor, ShinglefoldRetriever

__all__ = ["ShinglefoldCompressor", "ShinglefoldRetriever"]
