"""What ``index --passages`` adds on disk, beside the fingerprint: one merged shard of a real server."""

import os
from contextlib import closing

from bench import corpora
from bench.storage import CORPUS, URL, size_of
from bench.table import Row
from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.recipe import FIELD, PASSAGES, with_passages
from shinglefold.registry import make_scheme


def measure() -> list[Row]:
    """Return bytes a document and a word of the stored elements; nothing where no server is named."""
    if not corpora.available(CORPUS) or not os.environ.get(URL):
        return []
    pipeline = Pipeline.from_json(with_passages(default_definition(FIELD), FIELD), make_scheme())
    documents = [outcome.document or {} for outcome in pipeline.run(corpora.pages(CORPUS))]
    fields = recipe_mappings(pipeline.recipe(FIELD))["properties"][FIELD]["properties"]
    less = [
        {**one, FIELD: {name: value for name, value in one[FIELD].items() if name != PASSAGES}}
        for one in documents
    ]
    with closing(open_engine(os.environ[URL])) as engine:
        plain = size_of(engine, {name: kind for name, kind in fields.items() if name != PASSAGES}, less)
        whole = size_of(engine, fields, documents)
        info = engine.info()
    where = f"{info['distribution']} {info['version']}, one merged shard"
    stored = sum(len(one[FIELD][PASSAGES]) for one in documents) / len(documents)
    words = sum(one[FIELD]["shingles"] + 1 for one in documents) / len(documents)
    return [
        Row("a page with its fingerprint", plain, "B / document", f"{CORPUS}, {len(documents):,}; {where}"),
        Row("+ elements of passages", whole - plain, "B / document", f"{stored:.0f} of {words:.0f} words"),
        Row("a word", (whole - plain) / words, "B / word", f"{(whole - plain) / stored:.1f} an element"),
    ]
