"""A retriever that refills what folding removed."""

from haystack_integrations.components.retrievers.shinglefold.retriever import ShinglefoldRetriever

__all__ = ["ShinglefoldRetriever"]
