"""Scrapy crawls a small site and its mirror into a folded index: python scrapy_site.py http://localhost:9200"""

import sys
from collections.abc import Iterator
from typing import Any, Self

import scrapy
import small_site
from opensearchpy import OpenSearch, helpers
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import TextResponse
from scrapy.settings import Settings

from shinglefold import fold, setup
from shinglefold.ingest import Pipeline

SERVER, INDEX = sys.argv[1], "example-pages"


class SiteSpider(scrapy.Spider):
    """Follows all links; a page with a canonical link is one page, whatever address it was found under."""

    name = "site"

    def parse(self, response: TextResponse) -> Iterator[Any]:
        """Yield the page, if it has an article, and the requests for what it links to."""
        if response.css("main"):
            canonical = response.css("link[rel=canonical]::attr(href)").get()
            url = response.urljoin(canonical) if canonical else response.url
            yield {"url": url, "title": response.css("title::text").get(), "body": response.text}
        yield from response.follow_all(css="a")


class FoldedIndexPipeline:
    """Writes the articles of pages, each with its fingerprint. This class is what to copy."""

    def __init__(self, settings: Settings) -> None:
        self.index, self.actions = settings["OPENSEARCH_INDEX"], []
        self.article = Pipeline.from_json({"processors": [{"main_content": {"field": "body"}}]})
        self.client = fold(OpenSearch(settings["OPENSEARCH_URL"]))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the pipeline for a crawl."""
        return cls(crawler.settings)

    def open_spider(self) -> None:
        """Set the index up; a second time this changes nothing."""
        setup(self.client, self.index, text=["title", "body"], properties={"url": {"type": "keyword"}})

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Keep a page for the next bulk request."""
        self.actions.append({"_index": self.index, "_id": item["url"], "_source": item})
        if len(self.actions) == 200:
            self.write()
        return item

    def close_spider(self) -> None:
        """Write the rest."""
        self.write()

    def write(self) -> None:
        """Leave each page its article, without menus, banners and footers, and write the pages."""
        outcomes = self.article.run([action["_source"] for action in self.actions])
        for action, outcome in zip(self.actions, outcomes, strict=True):
            action["_source"] = outcome.document
        helpers.bulk(self.client, self.actions)
        self.actions = []


if __name__ == "__main__":
    # The site is at another port each time.
    client = fold(OpenSearch(SERVER))
    client.indices.delete(index=INDEX, ignore_unavailable=True)
    pipelines = {FoldedIndexPipeline: 300}
    settings = {"ITEM_PIPELINES": pipelines, "OPENSEARCH_URL": SERVER, "OPENSEARCH_INDEX": INDEX}
    process = CrawlerProcess({**settings, "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False})
    process.crawl(SiteSpider, start_urls=small_site.start())
    process.start()

    client.indices.refresh(index=INDEX)
    dedup = {"representative": "shortest_url", "members": 20}
    body = {"query": {"match": {"body": "street water fog flour"}}, "ext": {"dedup": dedup}}
    page = client.search(index=INDEX, body=body)
    print(page["hits"]["total"]["value"], "pages,", len(page["hits"]["hits"]), "different ones")
    for hit in page["hits"]["hits"]:
        print(
            hit["_source"]["title"],
            *(m["_id"] for m in hit["inner_hits"]["duplicates"]["hits"]["hits"]),
            sep="\n    ",
        )
