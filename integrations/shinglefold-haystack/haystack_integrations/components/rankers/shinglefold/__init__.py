"""A component that folds the documents of any retriever."""

from haystack_integrations.components.rankers.shinglefold.ranker import ShinglefoldRanker

__all__ = ["ShinglefoldRanker"]
