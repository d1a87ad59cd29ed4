"""What the groups of labelled corpora are worth: as documents get them, of one window, and regrouped."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import combinations
from tempfile import TemporaryDirectory
from time import process_time

from bench.groups.stored import words
from bench.quality.corpus import Corpus, Pair, corpus, names
from bench.quality.scores import Scores, scores
from bench.table import Row
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.rules import Rules
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.maintenance.scan import Scan
from shinglefold.model.linkage import Linkage
from shinglefold.model.scheme import Verify
from shinglefold.rerank import FoldOptions, collapse

INDEX = "bench-labelled"
_LINKAGES: tuple[Linkage, ...] = ("leader", "connected")
_WAYS: tuple[Verify, ...] = ("signature", "text")
_PIPELINE = {"processors": [{"supershingle": {"fields": ["body"]}}]}


def measure() -> list[Row]:
    """Return for each corpus at hand how well each way to group it agrees with the labels."""
    return [row for name in names() for row in _corpus(corpus(name))]


def _corpus(pages: Corpus) -> Iterator[Row]:
    pipeline = Pipeline.from_json(_PIPELINE)
    with TemporaryDirectory() as folder, closing(EmbeddedEngine(folder, words)) as engine:
        for verify in _WAYS:
            if engine.index_exists(INDEX):
                engine.delete_index(INDEX)
            numbering = Numbering(engine, INDEX, pipeline.recipe(), None, Rules(verify=verify))
            summary = index_documents(engine, INDEX, _documents(pages), pipeline, workers=1, groups=numbering)
            assert summary.indexed == len(pages)
            yield _row(pages, f"native, numbered at insert, by {verify}", _number(engine))
            for linkage in _LINKAGES:
                begin = process_time()
                done = regroup(engine, INDEX, RegroupOptions(linkage, verify=verify))
                spent, asked = process_time() - begin, done.counts.by_text
                name = f"native, regrouped, linkage {linkage}, by {verify}"
                yield _row(pages, name, _number(engine))
                yield Row(f"{pages.name}: {name}", spent, "s CPU", f"pairs decided by text: {asked:,}")
        hits = _documents_by_rank(engine)
        for linkage in _LINKAGES:
            found = collapse(hits, pipeline.scheme, FoldOptions(linkage=linkage))
            several = ([int(hits[at]["_id"]) for at in group.members] for group in found.groups)
            yield _row(pages, f"one window over all, linkage {linkage}", _pairs(several))


def _documents(pages: Corpus) -> Iterator[JSON]:
    return ({"id": str(at), "body": text} for at, text in enumerate(pages.texts))


def _documents_by_rank(engine: Engine) -> list[JSON]:
    """Return all documents in the order of the corpus, which stands for their rank."""
    engine.refresh(INDEX)
    scan = Scan(engine, INDEX, fields=["_dedup"])
    hits = [hit for page in scan.pages(scan.start()) for hit in page.hits]
    return sorted(hits, key=lambda hit: int(hit["_id"]))


def _number(engine: Engine) -> set[Pair]:
    groups: dict[int, list[int]] = {}
    for hit in _documents_by_rank(engine):
        if (number := hit["_source"]["_dedup"].get("group")) is not None:
            groups.setdefault(number, []).append(int(hit["_id"]))
    return _pairs(groups.values())


def _pairs(groups: Iterable[list[int]]) -> set[Pair]:
    return {pair for members in groups for pair in combinations(sorted(members), 2)}


def _row(pages: Corpus, name: str, folded: set[Pair]) -> Row:
    found: Scores = scores(pages, folded)
    told: Mapping[str, float] = {
        "P": found.precision,
        "R": found.recall,
        "B³": found.b_cubed,
        "ARI": found.rand,
    }
    note = ", ".join(f"{what} {value:.4f}" for what, value in told.items())
    return Row(f"{pages.name}: {name}", found.f1, "F1", f"all pairs within groups; {note}")
