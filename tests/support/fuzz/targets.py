"""What malformed inputs are thrown at: each target takes one input and raises where a promise is broken."""

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from support.fuzz.pages import page
from support.fuzz.spoil import spoil_bytes, spoil_json, spoil_text
from support.hits import SCHEME, Spec, hits_of

from shinglefold.canon import strip_html
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError, ShinglefoldError
from shinglefold.ingest import Pipeline, default_definition, index_documents, read
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.writing.dead_letters import replay
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse

#: Throws one input, made by chance.
Target = Callable[[random.Random], None]
LINES = "".join(
    json.dumps(page, ensure_ascii=False) + "\n"
    for page in (
        {"id": 1, "title": "Мост", "body": "Мост через Каменку закроют на ремонт", "tags": ["a", "b"]},
        {"_id": "2", "_source": {"title": "М'ята", "body": "М'яту збирають улітку", "date": "2026-11-21"}},
        {"id": "3", "body": "地铁三号线周末延长运营时间", "meta": {"host": "example.org", "n": 1.5}},
    )
).encode()
CSV = 'id,title,body\n1,"Мост, ремонт","Мост ""закроют""\nна ремонт"\n2;x,y,z\n'.encode()
_HTML = (
    "<!DOCTYPE html><html><head><meta charset=utf-8><title>т</title><style>p{}</style></head><body>"
    "<nav>m</nav>"
    "<article><h1>Мост</h1><p>Мост че<b>рез</b> Каменку &amp; закроют&nbsp;<i>на ремонт</i></p></article>"
    "<script>var a = '<p>';</script><table><tr><td>x</table></body></html>"
)
#: Seconds of the processor that a page may take, and those for each byte: some thirty times the usual.
_START, _A_BYTE = 0.5, 1e-6
_LETTERS = b"".join(
    json.dumps({"reason": "x", "stage": stage, "line": 3, "source": "a.jsonl", **kept}).encode() + b"\n"
    for stage, kept in (
        ("pipeline", {"document": {"_id": "1", "body": "a"}}),
        ("read", {"raw": "{", "id_field": "id"}),
    )
)
_CONDITIONS = (
    "ctx.format == 'html' && ctx.n >= 3",
    "!(ctx.url.startsWith('https')) || ctx?.meta?.containsKey('host')",
    "ctx.tags.contains('news') && ctx['odd name'] != null && ctx.body instanceof String",
)
_BODY = {
    "query": {
        "bool": {"must": [{"match": {"body": "мост ремонт"}}], "filter": [{"exists": {"field": "id"}}]}
    },
    "size": 3,
    "from": 1,
    "_source": ["title"],
    "sort": ["_score", {"id": {"order": "asc", "missing": "_last"}}],
    "ext": {
        "_dedup": {
            "representative": ["prefer:host=a.org", {"newest": "date"}],
            "scope": [{"field": "lang"}, "date:7d"],
            "members": {"size": 3, "_source": ["title"]},
            "min_resemblance": 0.7,
            "min_shared": 1,
            "window": 20,
            "explain": {"passages": True, "fields": ["body"]},
        }
    },
}


def _readable(records: Iterator[Record]) -> list[Record]:
    """Return what a reader yields: each record a document, or a reason in words."""
    found = []
    with suppress(InputError):
        for record in records:
            assert (record.document is None) == bool(record.reason), record
            assert len(record.reason) < 1_000, record.reason
            # What is handed on can be written as JSON, whatever was read.
            json.dumps(record.document, allow_nan=False).encode()
            found.append(record)
    return found


@dataclass(slots=True)
class Targets:
    """Every kind of malformed input; files go to a folder, searches to a small index in it."""

    folder: Path
    pipeline: Pipeline
    search: FoldedSearch
    cursor: str

    @classmethod
    def make(cls, folder: Path) -> "Targets":
        pipeline = Pipeline.from_json(default_definition())
        engine = EmbeddedEngine(folder / "engine", pipeline.tools.canonicalizer)
        lines = [json.loads(line) for line in LINES.splitlines()]
        copies = [{**lines[0], "id": str(number), "date": "2026-11-21"} for number in range(10, 20)]
        others = [{"id": "x", "body": f"Другая новость номер {number} о погоде"} for number in range(5)]
        assert index_documents(engine, "site", [*copies, *others], pipeline, workers=1).failed == 0
        search = FoldedSearch(engine, pipeline.scheme, tiebreaker="_shard_doc")
        first = search.search("site", {"size": 1}, FoldOptions(cursor=True))
        return cls(folder, pipeline, search, first["dedup"]["cursor"])

    def all(self) -> Mapping[str, Target]:
        return {
            "jsonl": lambda chance: self._read("pages.jsonl", LINES, chance),
            "csv": lambda chance: self._read("pages.csv", CSV, chance),
            "html": self._html,
            "pages": self._page,
            "pipelines": self._pipeline,
            "conditions": self._condition,
            "bodies": self._body,
            "fingerprints": self._fingerprints,
            "cursors": self._cursor,
            "dead letters": self._dead_letters,
        }

    def _read(self, name: str, data: bytes, chance: random.Random) -> None:
        file = self.folder / name
        file.write_bytes(spoil_bytes(data, chance))
        documents = [one.document for one in _readable(read(str(file), ReadOptions())) if one.document]
        outcomes = list(self.pipeline.run(documents))
        assert len(outcomes) == len(documents)
        assert all(one.failure or one.document or one.status == "dropped" for one in outcomes)

    def _html(self, chance: random.Random) -> None:
        text = strip_html(spoil_text(_HTML, chance))
        text.encode()
        self.pipeline.tools.fingerprinter.fingerprint([text])

    def _page(self, chance: random.Random) -> None:
        made = page(chance)
        file = self.folder / "page.html"
        file.write_bytes(made.raw)
        begin = process_time()
        (record,) = read(str(file), ReadOptions())
        assert record.document, record.reason
        shown, all_of_it = (strip_html(record.document["body"], keep) for keep in (False, True))
        assert process_time() - begin < _START + _A_BYTE * len(made.raw), f"{len(made.raw):,} bytes are slow"
        for text in (shown, all_of_it):
            joined = "".join(text.split())
            lost = [one for one in made.paragraphs if "".join(one.split()) not in joined]
            assert not lost, f"{len(lost)} of {len(made.paragraphs)} paragraphs are lost: {text[:200]!r}"
        assert made.hidden not in shown, "a dialog that is not open counts"
        (outcome,) = self.pipeline.run([{**record.document, "format": "html"}])
        assert outcome.document, outcome

    def _pipeline(self, chance: random.Random) -> None:
        with suppress(ConfigError):
            made = Pipeline.from_json(
                spoil_json(deepcopy(default_definition()), chance),
                self.pipeline.scheme,
            )
            outcomes = list(made.run([{"_id": "1", "title": "a", "body": "<p>b", "format": "html"}]))
            assert len(outcomes) == 1

    def _condition(self, chance: random.Random) -> None:
        condition = spoil_text(chance.choice(_CONDITIONS), chance)
        with suppress(ConfigError):
            made = Pipeline.from_json(
                {"processors": [{"drop": {"if": condition}}]},
                self.pipeline.scheme,
            )
            list(made.run([{"format": "html", "n": 5, "url": "https://a", "tags": ["news"], "body": 1}]))

    def _body(self, chance: random.Random) -> None:
        body = spoil_json(deepcopy(_BODY), chance)
        if isinstance(body, dict):
            with suppress(ShinglefoldError):
                answer = self.search.search("site", body)
                assert len(answer["hits"]["hits"]) <= 10_000

    def _fingerprints(self, chance: random.Random) -> None:
        hits = hits_of([Spec(seed=number, changed=number * 9, digest=str(number % 3)) for number in range(6)])
        hit = chance.choice(hits)
        hit["fields"] = spoil_json(hit["fields"], chance)
        if not isinstance(hit["fields"], dict):
            # Not an answer of an engine's.
            return
        folded = collapse(hits, SCHEME)
        assert sorted(place for group in folded.groups for place in group.members) == list(range(6))

    def _cursor(self, chance: random.Random) -> None:
        raw = base64.urlsafe_b64decode(self.cursor + "==")
        spoilt = base64.urlsafe_b64encode(spoil_bytes(raw, chance)).decode()
        cursor = chance.choice((spoil_text(self.cursor, chance), spoilt))
        if cursor == self.cursor:
            return
        try:
            self.search.search("site", {"size": 1, "ext": {"dedup": {"cursor": cursor}}})
        except ShinglefoldError:
            return
        raise AssertionError(f"a forged cursor was taken: {cursor!r}")

    def _dead_letters(self, chance: random.Random) -> None:
        file = self.folder / "dead.jsonl"
        file.write_bytes(spoil_bytes(_LETTERS, chance))
        _readable(replay(str(file)))
