"""What folded pages still show twice, and what they hide that is something else."""

import random
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

from bench import corpora
from bench.quality.corpus import POSITIVE, Corpus
from bench.table import Row
from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, duplicates

_SEARCHES = 200
#: How pages are decided; a threshold of .57 leaves half of the near-copies that the default one leaves.
_DECIDED: tuple[dict[str, Any], ...] = (
    {"verify": "signature"},
    {"min_resemblance": 0.57},
    {"verify": "text"},
)


def measure(whole: Corpus) -> Iterator[Row]:
    """Search for titles, and yield what share of the hits shown is a near-copy of one before it."""
    scheme = make_scheme()
    titles = {page["id"]: page.get("title", "") for page in corpora.pages(whole.name)}
    given = [
        {"id": id_, "heading": titles[id_], "body": text}
        for id_, text in zip(whole.ids, whole.texts, strict=True)
    ]
    documents = [one.document or {} for one in Pipeline.from_json(default_definition(), scheme).run(given)]
    known = sorted({title for title in titles.values() if title})
    queries = random.Random(84).sample(known, min(_SEARCHES, len(known)))
    made = mappings(scheme)
    made["properties"] |= {"heading": {"type": "text"}, "body": {"type": "text"}}
    with TemporaryDirectory() as folder, EmbeddedEngine(folder, search_canonicalizer(scheme)) as engine:
        engine.create_index("pages", made, {})
        stored = ({"_index": "pages", "_id": one["id"], "_source": one} for one in documents)
        assert not engine.bulk(stored).failures
        engine.refresh("pages")
        search = FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())
        for decided in _DECIDED:
            yield _row(whole, search, queries, decided)


def _row(whole: Corpus, search: FoldedSearch, queries: list[str], decided: dict[str, Any]) -> Row:
    place = {id_: at for at, id_ in enumerate(whole.ids)}

    def alike(one: str, other: str) -> bool:
        a, b = sorted((place[one], place[other]))
        return whole.truth.get((a, b), 0.0) >= POSITIVE

    start = time.process_time()
    answers = [search.search("pages", _body(query, decided)) for query in queries]
    spent = (time.process_time() - start) / len(queries)
    shown = twice = attached = wrong = 0
    for answer in answers:
        hits = answer["hits"]["hits"]
        ids = [hit["_id"] for hit in hits]
        shown += len(ids)
        twice += sum(any(alike(id_, better) for better in ids[:at]) for at, id_ in enumerate(ids))
        folded = [(hit["_id"], copy["_id"]) for hit in hits for copy in duplicates(hit)]
        attached += len(folded)
        wrong += sum(not alike(*pair) for pair in folded)
    share = wrong / max(1, attached)
    told = decided.get("verify", f"signature from {decided.get('min_resemblance')} up")
    note = f"{share:.2%} of {attached:,} attached are other texts; {spent * 1e3:.1f} ms of CPU a page"
    return Row(
        f"{whole.name}: near-copies left on pages, by {told}", twice / max(1, shown), "of hits shown", note
    )


def _body(query: str, decided: dict[str, Any]) -> dict[str, Any]:
    words = {"multi_match": {"query": query, "fields": ["heading^2", "body"]}}
    return {"query": words, "size": 10, "ext": {"dedup": decided}}
