"""One result a page, where each heading is a document: python headings.py http://localhost:9200

Headings are compared by the text of their whole page, so those of a page and of its copies are one group.
"""

import sys
from collections.abc import Iterator
from typing import Any

from opensearchpy import OpenSearch, helpers

from shinglefold import fold, setup
from shinglefold.examples import articles

INDEX = "example-headings"
TEXTS = {one["id"]: one for one in articles()}
#: Pages of a manual with the texts of their headings; its mirror has other wordings of some.
PAGES = {
    "docs.example/water": ["en-main-elm-1", "en-boil-notice-1", "en-main-flush-1", "en-meter-read-1"],
    "mirror.example/water": ["en-main-elm-5", "en-boil-notice-1", "en-main-flush-1", "en-meter-read-1"],
    "docs.example/bread": ["en-starter-feed-1", "en-loaf-nora-1", "en-loaf-ravi-1"],
    "mirror.example/bread": ["en-starter-feed-1", "en-loaf-nora-2", "en-loaf-ravi-1"],
    "docs.example/kettle": ["en-kettle-a-1"],
}


def headings() -> Iterator[dict[str, Any]]:
    """Yield a document for each heading."""
    for page, names in PAGES.items():
        page_text = "\n".join(TEXTS[name]["body"] for name in names)
        for anchor, text in enumerate((TEXTS[name] for name in names), 1):
            url = f"https://{page}#{anchor}"
            heading = {
                "heading": text["title"],
                "body": text["body"],
                "url": url,
                "page": url.partition("#")[0],
            }
            source = {
                **heading,
                "host": page.partition("/")[0],
                "anchor": str(anchor),
                "page_text": page_text,
            }
            yield {"_index": INDEX, "_id": url, "_source": source}


if __name__ == "__main__":
    client = fold(OpenSearch(sys.argv[1]))
    keyword = {"type": "keyword"}
    properties = {
        "page": keyword,
        "host": keyword,
        "anchor": keyword,
        "page_text": {"type": "text", "index": False},
    }
    setup(client, INDEX, text=["page_text"], properties=properties)
    helpers.bulk(client, headings(), refresh=True)

    dedup = {
        # A page of the manual itself, by its best heading.
        "representative": "prefer:host=docs.example",
        "inner_hits": [
            {"name": "headings", "size": 3, "_source": ["heading"], "collapse": {"field": "anchor"}},
            {"name": "pages", "size": 9, "_source": ["page"], "collapse": {"field": "page"}},
        ],
    }
    query = {"multi_match": {"query": "water", "fields": ["heading^2", "body"]}}
    source = ["heading", "url", "page"]
    answer = client.search(index=INDEX, body={"query": query, "_source": source, "ext": {"dedup": dedup}})
    for hit in answer["hits"]["hits"]:
        inner = {name: found["hits"]["hits"] for name, found in hit["inner_hits"].items()}
        copies = {one["_source"]["page"] for one in inner["pages"]} - {hit["_source"]["page"]}
        print(hit["_source"]["url"], *(f"also {page}" for page in sorted(copies)), sep=", ")
        for one in inner["headings"]:
            print("   ", one["_source"]["heading"])
