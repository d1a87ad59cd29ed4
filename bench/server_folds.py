"""What folds of the labelled pairs: by exact digest, by the engine's own ``min_hash`` filter, by ours."""

import random
import re
from collections import defaultdict
from itertools import combinations

from bench import corpora
from bench.server_indices import MINIMA, RAW, Site
from bench.table import Row

_Pairs = set[tuple[str, str]]
#: Documents whose copies are looked for by ``min_hash``: a query of so many terms is not for each of them.
_SAMPLE = 400
_LEAST = 0.62
_MOST = 200


def folds(site: Site) -> list[Row]:
    """Return the share of pairs ≥ .80 each way folds; the other shares are in the notes."""
    labelled = _labelled(site.corpus)
    sample = set(random.Random(84).sample(sorted(labelled), _SAMPLE))
    own = _by_min_hash(site, sample)
    told = f"pairs of {_SAMPLE} documents drawn; {MINIMA} minima, at least {_LEAST:.0%} of them equal"
    return [
        _row(
            "exact digest",
            site,
            _by_digest(site),
            labelled,
            "what collapse on the digest folds; no two pages here are exact copies",
        ),
        _row("shinglefold", site, site.pairs, labelled, "default scheme"),
        _row("engine's min_hash, sample", site, own, sample, told),
        _row("shinglefold, sample", site, site.pairs, sample, "the same sample"),
    ]


def _row(name: str, site: Site, folded: _Pairs, of: set[str], note: str) -> Row:
    labelled = _labelled(site.corpus)

    def counted(pair: tuple[str, str]) -> bool:
        return pair[0] in labelled and pair[1] in labelled and (pair[0] in of or pair[1] in of)

    truth = {pair: similarity for pair, similarity in corpora.labels(site.corpus).items() if counted(pair)}
    same = {pair for pair, similarity in truth.items() if similarity >= 0.95}
    alike = {pair for pair, similarity in truth.items() if similarity >= 0.8}
    ours = {pair for pair in folded if counted(pair)}
    wrong = sum(truth.get(pair, 0.0) < 0.7 for pair in ours) / max(1, len(ours))
    told = f"{len(same & ours) / len(same):.3f} of pairs ≥ .95; {wrong:.2%} of {len(ours):,} folded below .70"
    return Row(f"{name} folds of pairs ≥ .80", len(alike & ours) / len(alike), "share", f"{told}; {note}")


def _by_digest(site: Site) -> _Pairs:
    groups: dict[str, list[str]] = defaultdict(list)
    for outcome in site.pipeline.run(site.stripped):
        assert outcome.document is not None
        if not (digest := outcome.document["dedup"]["digest"]).endswith("."):
            groups[digest].append(outcome.document["_id"])
    return {
        (min(pair), max(pair)) for members in groups.values() for pair in combinations(sorted(members), 2)
    }


def _by_min_hash(site: Site, sample: set[str]) -> _Pairs:
    """Ask the engine, for each text of a sample, for those that share enough minima with it."""
    texts = {
        page["id"]: f"{page['title']}\n{text}"
        for page, text in zip(corpora.pages(site.corpus), corpora.texts(site.corpus), strict=True)
    }
    minima = {"type": "text", "analyzer": "minima", "index_options": "docs", "norms": False}
    site.create(RAW, {"minima": minima})
    result = site.engine.bulk(
        {"_index": RAW, "_id": name, "_source": {"minima": text}} for name, text in texts.items()
    )
    assert result.indexed == len(texts)
    site.engine.refresh(RAW)
    found: _Pairs = set()
    for name in sorted(sample):
        alike = {
            "fields": ["minima"],
            "like": [{"_index": RAW, "_id": name}],
            "include": True,
            "min_term_freq": 1,
            "min_doc_freq": 1,
            "max_query_terms": MINIMA,
            "minimum_should_match": f"{_LEAST:.0%}",
        }
        body = {"query": {"more_like_this": alike}, "size": _MOST, "_source": False}
        hits = site.engine.search(RAW, body)["hits"]["hits"]
        assert name in {hit["_id"] for hit in hits}
        found |= {(min(name, hit["_id"]), max(name, hit["_id"])) for hit in hits if hit["_id"] != name}
    return found


def _labelled(corpus: str) -> set[str]:
    """Return the pages the labels speak of: those of 30 tokens (of 30 characters, in Chinese) and more."""
    token = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
    pages = zip(corpora.pages(corpus), corpora.texts(corpus), strict=True)
    return {page["id"] for page, text in pages if len(token.findall(text)) >= 30}
