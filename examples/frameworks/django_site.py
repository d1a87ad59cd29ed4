"""Django's models in a folded index, by the search of Wagtail: python django_site.py http://localhost:9200"""

import sys

import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "modelsearch", "news"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MODELSEARCH_BACKENDS={
        "default": {"BACKEND": "news.folded_backend", "URLS": [sys.argv[1]], "INDEX_PREFIX": "example-"}
    },
)


def main() -> None:
    """Fill the database and the index, change an article, and search."""
    from modelsearch.backends import get_search_backend
    from news.models import Article

    from shinglefold.examples import articles

    call_command("migrate", run_syncdb=True, verbosity=0)
    texts = [one for one in articles() if one["lang"] == "en" and one["format"] == "text"]
    Article.objects.bulk_create(Article(title=a["title"], body=a["body"], host=a["host"]) for a in texts)
    call_command("rebuild_modelsearch_index", verbosity=0)

    # modelsearch writes what is saved, and the client signs it: this article is no copy any more.
    changed = Article.objects.get(host="cityhall.example", title__startswith="Water main repairs")
    changed.body = "The water utility will not close Elm Street after all, the mayor said on Friday evening."
    changed.save()
    backend = get_search_backend()
    backend.get_index_for_model(Article).refresh()

    found = Article.objects.search("water")
    print(found.count(), "articles")
    for article in found[:20]:
        print(f"{article.title} ({article.host})")
        for copy in Article.objects.filter(pk__in=article.copies).order_by("host"):
            print("   ", copy.host)


if __name__ == "__main__":
    django.setup()
    main()
