"""The documents and searches of opensearch-py and of elasticsearch.dsl, by a folded client.

Run: python dsl.py opensearch http://localhost:9200, or the same with elasticsearch.
"""

import sys

from shinglefold import fold, setup
from shinglefold.examples import articles

if sys.argv[1] == "opensearch":
    from opensearchpy import Date, Document, Keyword, Text, connections
    from opensearchpy import OpenSearch as Client
else:
    from elasticsearch import Elasticsearch as Client
    from elasticsearch.dsl import Date, Document, Keyword, Text, connections


class Article(Document):
    """An article; its index is made by ``init``."""

    title = Text()
    body = Text()
    host = Keyword()
    date = Date()

    class Index:
        """The index of articles."""

        name = "example-articles"


client = fold(Client(sys.argv[2]))
connections.add_connection("default", client)
Article.init()
setup(client, "example-articles", text=["title", "body"])

for one in articles():
    if one["lang"] == "en" and one["format"] == "text":
        Article(
            meta={"id": one["id"]}, **{name: one[name] for name in ("title", "body", "host", "date")}
        ).save()
changed = Article.get(id="en-main-elm-2")
changed.update(
    body="The water utility will not close Elm Street after all, the mayor said on Friday evening."
)
client.indices.refresh(index="example-articles")

search = Article.search().query("match", body="water").extra(ext={"dedup": {"representative": "newest:date"}})
response = search[:10].execute()
print(response.hits.total.value, "articles,", response.dedup.groups_total.value, "different ones")
for hit in response:
    members = hit.meta.inner_hits.duplicates
    names = " ".join(member.meta.id for member in members)
    print(f"Article {hit.title} ({hit.date:%Y-%m-%d}), {members.hits.total.value}: {names}")
