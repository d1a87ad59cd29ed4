"""The models of the example: articles of several sites."""

from django.db import models
from modelsearch import index
from modelsearch.queryset import SearchableQuerySetMixin


class ArticleQuerySet(SearchableQuerySetMixin, models.QuerySet):
    """Articles, which can be searched."""


class Article(index.Indexed, models.Model):
    """An article of one of several sites."""

    title = models.TextField()
    body = models.TextField()
    host = models.TextField()
    objects = ArticleQuerySet.as_manager()
    search_fields = (index.SearchField("title"), index.SearchField("body"), index.FilterField("host"))
