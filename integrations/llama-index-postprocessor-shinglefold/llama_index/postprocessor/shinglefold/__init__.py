"""LlamaIndex retrieval without near-copies."""

from llama_index.postprocessor.shinglefold.base import ShinglefoldPostprocessor, ShinglefoldRetriever

__all__ = ["ShinglefoldPostprocessor", "ShinglefoldRetriever"]
