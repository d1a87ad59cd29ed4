"""Reads answers: hits with their values, dates and stored fingerprints; and what an answer lacks.

An answer without some shards is not yet an error: ``lost_shards`` counts them, and ``check_complete`` raises.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.contracts.engine import JSON
from shinglefold.documents import SourceFilter, holds_html, plain_text, values_at
from shinglefold.errors import NODE_GONE, EngineUnavailable, PitExpired, UnsupportedQuery, WindowTooLarge
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import DecodeProblems, Decoder, stored_parts
from shinglefold.model.values import FACTS_MARK, Bytes, Int64s

if TYPE_CHECKING:
    from shinglefold.rerank.request.fold_options import Scope


Hit = Mapping[str, Any]
#: The most characters of a date as text.
_LONGEST_DATE = 64
_NOTHING: Mapping[str, Any] = {}
#: The key in ``lacks`` for hits that a server counted but did not return.
CUT = "cut_hits"
_WINDOW = "Result window is too large"
#: A message quotes at most this many characters of reasons.
_LONGEST = 300
#: Types of failures that are due to the request.
_REJECTED = {"illegal_argument_exception", "script_exception"}
_HEADER = ("timed_out", "terminated_early", "_shards", "_clusters")


def field_values(hit: Hit, name: str) -> list[Any]:
    """Return the values of a field, from ``fields`` if it is there, else from ``_source``; [] if absent."""
    found = (hit.get("fields") or _NOTHING).get(name)
    if found is None:
        return values_at(hit.get("_source") or _NOTHING, name)
    return found if isinstance(found, list) else [found]


def identity(hit: Hit) -> tuple[Any, Any, Any]:
    """Return index, id and routing: no two documents share all three."""
    return hit.get("_index"), hit.get("_id"), hit.get("_routing")


def mark(hit: Hit) -> str:
    """Return a short hash of a document's identity, as cursors hold it."""
    own: str | None = hit.get("mark")
    return own or b64encode(blake2b(repr(identity(hit)).encode(), digest_size=9).digest()).decode()


def with_source(hit: Hit, wanted: SourceFilter) -> dict[str, Any]:
    """Return a hit with its source filtered."""
    if "_source" not in hit:
        return dict(hit)
    rest = {name: value for name, value in hit.items() if name != "_source"}
    return rest | ({"_source": wanted.apply(hit["_source"])} if wanted.wanted else {})


def stored_value(source: object, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a dotted path; keys may contain dots, as in flat documents."""
    if not isinstance(source, Mapping):
        return None
    if name in source:
        return source[name]
    head, _, rest = name.partition(".")
    return stored_value(source.get(head), rest) if rest else None


def stored_texts(source: Mapping[str, Any], name: str) -> Iterator[tuple[int | None, str]]:
    """Yield the texts of a field as a reader sees them, without markup; with their positions in a list."""
    stored = stored_value(source, name)
    several = isinstance(stored, list)
    for number, text in enumerate(stored if several else [stored]):
        if isinstance(text, str):
            yield number if several else None, _visible_text(text) if holds_html(source, name) else text


def joined_texts(source: Mapping[str, Any], fields: Iterable[str]) -> str:
    """Return the texts of several fields as a reader sees them, a line break between two."""
    return "\n".join(text for name in fields for _, text in stored_texts(source, name))


def language_code(scheme: Scheme, declared: object) -> str:
    """Return the language that a document declares, if the scheme has it; else ""."""
    code = str(declared or "").replace("_", "-").split("-")[0].lower()
    return code if code in {reference.code for reference in scheme.languages} else ""


def _visible_text(html: str) -> str:
    # Imported only for documents that are HTML.
    from shinglefold.canon import strip_html

    return strip_html(html, keep_hidden=True)


def moment(value: object) -> float | None:
    """Return a date, ISO 8601 or milliseconds, in seconds since 1970; None if it is neither."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > _LONGEST_DATE):
        return None
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.lstrip("-").isdigit()):
            when = float(value) / 1000
        elif isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            when = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return when if isfinite(when) else None


def stored_fingerprint(hit: Hit, dedup: str) -> dict[str, Any]:
    """Return the parts of a hit's stored fingerprint (``digest``, ``signature`` …); {} if it has none."""
    prefix = f"{dedup}."
    stored = stored_values(hit, dedup)
    return {name.removeprefix(prefix): value for name, value in stored.items() if name.startswith(prefix)}


def stored_values(hit: Hit, dedup: str) -> Mapping[str, Any]:
    """Return the doc values of a hit, with missing parts of the fingerprint from its source."""
    fields: Mapping[str, Any] = hit.get("fields") or _NOTHING
    if "_source" not in hit:
        return fields
    # As ``docvalue_fields`` return them: flat names, every value a list.
    stored = stored_parts(hit["_source"], dedup).items()
    flat = {f"{dedup}.{key}": value if isinstance(value, list) else [value] for key, value in stored}
    return {**flat, **fields}


@dataclass(frozen=True, slots=True)
class FingerprintColumns:
    """The fingerprints of n hits as columns; equal texts have equal codes.

    ``signatures``: uint8 (n, B), zero where not ``signed``. ``shingles``: int64 (n,).
    ``digests``: int32 (n,), a code each, −1 if there is none.
    ``scopes``: float64 (n, S), a code or seconds; NaN if the hit has no value.
    ``keywords``: the supershingles of each hit.
    ``facts``: int32 (n,), a code for the facts of each, 0 if it has none; None if no hit has facts.
    """

    signatures: Bytes
    signed: NDArray[np.bool_]
    shingles: Int64s
    digests: NDArray[np.int32]
    scopes: NDArray[np.float64]
    keywords: tuple[Sequence[str], ...]
    facts: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.signed)

    def take(self, rows: Sequence[int]) -> "FingerprintColumns":
        """Return the fingerprints of the given rows."""
        index = np.asarray(rows, np.int64)
        return FingerprintColumns(
            self.signatures[index],
            self.signed[index],
            self.shingles[index],
            self.digests[index],
            self.scopes[index],
            tuple([self.keywords[row] for row in rows]),
            None if self.facts is None else self.facts[index],
        )

    def join(self, other: "FingerprintColumns") -> "FingerprintColumns":
        """Return these fingerprints followed by the others."""
        return FingerprintColumns(
            np.concatenate((self.signatures, other.signatures)),
            np.concatenate((self.signed, other.signed)),
            np.concatenate((self.shingles, other.shingles)),
            np.concatenate((self.digests, other.digests)),
            np.concatenate((self.scopes, other.scopes)),
            self.keywords + other.keywords,
            None
            if self.facts is other.facts is None
            else np.concatenate((self.fact_codes(), other.fact_codes())),
        )

    def fact_codes(self) -> NDArray[np.int32]:
        """Return a code for the facts of each hit, 0 if it has none."""
        return np.zeros(len(self), np.int32) if self.facts is None else self.facts


@dataclass(slots=True)
class FingerprintCounts:
    """Counts of the hits that were read.

    ``unsigned``: hits of this scheme with too little text for a signature, and hits without a fingerprint;
    ``unreadable``: hits with a damaged fingerprint; ``other_schemes`` and ``languages``: hits by name;
    ``earlier``: hits that match one on an earlier page of a cursor; ``repeated``: further occurrences of the
    same document.
    """

    hits: int = 0
    repeated: int = 0
    unsigned: int = 0
    unreadable: int = 0
    earlier: int = 0
    other_schemes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


class FingerprintReader:
    """Reads hits into columns, block by block; equal texts get equal codes in all blocks.

    Args:
        fields: the only fields to read, from ``fields`` of hits; None reads all of them, and sources.
    """

    def __init__(
        self,
        scheme: Scheme,
        dedup: str,
        scopes: "Sequence[Scope]" = (),
        seal: Seal | None = None,
        fields: Sequence[str] | None = None,
    ) -> None:
        self.counts = FingerprintCounts()
        self._fields = fields
        self._dedup = dedup
        self._decoder = Decoder(scheme, dedup, seal)
        self._scopes = tuple(scopes)
        self._codes: dict[object, int] = {}
        #: The code of each digest; −1 for no text.
        self._texts: dict[object, int] = {"": -1}
        self._next_code = count()
        #: The code of the facts of a document; 0 for none.
        self._facts: dict[str, int] = {"": 0}

    def read(self, hits: Sequence[Hit]) -> FingerprintColumns:
        """Return the fingerprints of hits; a damaged one counts as none. Cost: about 1 µs a hit."""
        self.counts.hits += len(hits)
        if self._fields is not None:
            hits = list(map(self.narrow, hits))
        rows = [
            fields
            if "_source" not in hit and (fields := hit.get("fields"))
            else stored_values(hit, self._dedup)
            for hit in hits
        ]
        keywords = self._decoder.keywords(rows)
        problems = DecodeProblems(other_schemes=self.counts.other_schemes)
        signatures, shingles, languages, digests = self._decoder.decode(rows, keywords, problems)
        self.counts.unsigned += problems.unsigned
        self.counts.unreadable += problems.unreadable
        self.counts.languages.update(languages)
        del self.counts.languages[""]
        lengths = np.array(shingles, np.int64)
        signed = lengths >= 0
        digests, facts = self._split(digests)
        return FingerprintColumns(
            np.frombuffer(signatures, np.uint8).reshape(len(rows), self._decoder.size),
            signed,
            lengths,
            # Each new text takes the next code; codes may be skipped.
            np.fromiter(map(self._texts.setdefault, digests, self._next_code), np.int32, len(rows)),
            self._scope_columns(hits),
            _of_signed(keywords, signed),
            facts,
        )

    def narrow(self, hit: Hit) -> Hit:
        """Return a hit with only the fields that folding reads."""
        if self._fields is None:
            return hit
        found = hit.get("fields") or _NOTHING
        rest = {name: value for name, value in hit.items() if name != "_source"}
        return {**rest, "fields": {name: found[name] for name in self._fields if name in found}}

    def _split(self, digests: Sequence[Any]) -> tuple[Sequence[Any], NDArray[np.int32] | None]:
        """Return digests without facts, and a code for the facts of each; None if none has facts."""
        if not any([type(one) is str and FACTS_MARK in one for one in digests]):  # noqa: C419 - a list is faster
            return digests, None
        parts = [one.partition(FACTS_MARK) if type(one) is str else (one, "", "") for one in digests]
        codes = [self._facts.setdefault(own, len(self._facts)) for _, _, own in parts]
        return [text for text, _, _ in parts], np.array(codes, np.int32)

    def _scope_columns(self, hits: Sequence[Hit]) -> NDArray[np.float64]:
        if not self._scopes:
            return np.empty((len(hits), 0))
        columns = np.full((len(hits), len(self._scopes)), np.nan)
        for column, scope in enumerate(self._scopes):
            for row, hit in enumerate(hits):
                values = field_values(hit, scope.field)
                if values:
                    columns[row, column] = self._scope_value(scope, values)
        return columns

    def _scope_value(self, scope: "Scope", values: list[Any]) -> float:
        if scope.within is not None:
            seconds = moment(values[0])
            return np.nan if seconds is None else seconds
        key = (scope.field, *sorted(set(map(plain_text, values))))
        return float(self._codes.setdefault(key, len(self._codes)))


def _of_signed(keywords: Sequence[Sequence[str]], signed: NDArray[np.bool_]) -> tuple[Sequence[str], ...]:
    """Return the supershingles of hits with a signature, () for the others."""
    if not any(keywords):
        return ((),) * len(keywords)
    return tuple([words if has else () for words, has in zip(keywords, signed.tolist(), strict=True)])


def shard_reasons(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ``type`` and ``reason`` of each shard failure."""
    failures = (answer.get("_shards") or {}).get("failures") or ()
    return [failure.get("reason") or {} for failure in failures]


def lost_shards(answer: Mapping[str, Any]) -> int:
    """Return how many shards are missing from a response.

    A shard without a node counts neither as successful nor as failed.
    """
    shards = answer.get("_shards") or {}
    total, successful = shards.get("total"), shards.get("successful")
    absent = total - successful if isinstance(total, int) and isinstance(successful, int) else 0
    return max(int(shards.get("failed") or 0), absent)


def refuse_small_windows(answer: Mapping[str, Any]) -> None:
    """Raise if a response lacks an index because its result window is too small.

    A server rejects such a request if all indices have too small a window. If only one of several has, its
    response just leaves the index out.

    Raises:
        WindowTooLarge: an index allows fewer hits than requested.
    """
    for failure in (answer.get("_shards") or {}).get("failures") or ():
        if any(_WINDOW in reason for reason in _reason_texts(failure.get("reason"))):
            raise WindowTooLarge(
                f"the index {failure.get('index')!r} allows fewer hits than requested: request "
                "fewer, or raise its index.max_result_window"
            )


def refuse_rejected_hits(answer: Mapping[str, Any]) -> None:
    """Raise if shards reject a part of hits that the request returns, such as a script field that fails.

    Raises:
        UnsupportedQuery: a shard does.
    """
    for reason in shard_reasons(answer):
        if reason.get("type") in _REJECTED:
            texts = ", caused by: ".join(dict.fromkeys(_reason_texts(reason)))[:_LONGEST]
            raise UnsupportedQuery(f"a shard can't return its hits: {reason['type']}: {texts}")


def check_complete(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a response, and raise unless all shards took part in it.

    Raises:
        PitExpired: a shard has lost the point in time.
        WindowTooLarge: an index allows fewer hits than requested.
        UnsupportedQuery: a shard can't execute the request.
        EngineUnavailable: a shard did not respond.
    """
    refuse_small_windows(answer)
    reasons = shard_reasons(answer)
    quoted = "; ".join(str(reason.get("reason")) for reason in reasons)[:_LONGEST]
    kinds = {str(reason.get("type")) for reason in reasons}
    if "search_context_missing_exception" in kinds or NODE_GONE in quoted:
        raise PitExpired("a shard lost the point in time; open another")
    if "illegal_argument_exception" in kinds:
        raise UnsupportedQuery(f"a shard can't read the request: {quoted}")
    if lost_shards(answer) or answer.get("timed_out"):
        raise EngineUnavailable(f"not all shards answered: {quoted or 'timed out'}; try again later")
    return answer


def _reason_texts(reason: object) -> Iterator[str]:
    while isinstance(reason, Mapping):
        yield str(reason.get("reason"))
        reason = reason.get("caused_by")


def missing_parts(answer: Mapping[str, Any]) -> JSON:
    """Return what an answer lacks, by name: numbers, or true; {} if it is complete."""
    clusters = answer.get("_clusters")
    lost = sum(int(clusters.get(name) or 0) for name in ("skipped", "partial", "failed")) if clusters else 0
    found = {
        "failed_shards": lost_shards(answer),
        "timed_out": bool(answer.get("timed_out")),
        "terminated_early": bool(answer.get("terminated_early")),
        "skipped_clusters": lost,
    }
    return {name: value for name, value in found.items() if value}


def lost_hits(answer: Mapping[str, Any], size: int, total: object, hits_before: int) -> int:
    """Return the least number of hits that were counted and are not in an answer.

    A search pipeline removed them, or the server lost them. 0 in partial answers: Elasticsearch counts on
    after ``terminate_after``.

    Args:
        size: how many hits were requested.
        total: ``hits.total`` of the search.
        hits_before: how many hits were read before.
    """
    if missing_parts(answer):
        return 0
    counted = total["value"] if isinstance(total, Mapping) else 0
    return max(0, min(size, counted - hits_before) - len(answer["hits"]["hits"]))


class PartialAnswer:
    """What the answers to the requests of one search lack: the greatest of each number.

    Attributes:
        header: the parts of partial answers in which the engine reports it; {} if all are complete.
    """

    def __init__(self) -> None:
        self.lacks: JSON = {}
        self.header: JSON = {}

    def __bool__(self) -> bool:
        return bool(self.lacks)

    def note(self, answer: Mapping[str, Any], cut: int = 0) -> bool:
        """Record what an answer lacks, and how many hits are cut; return whether it is partial."""
        lacks = missing_parts(answer) | ({CUT: cut} if cut else {})
        for name, value in lacks.items():
            self.lacks[name] = max(self.lacks.get(name, 0), value)
        if lacks:
            self.header |= {name: answer[name] for name in _HEADER if answer.get(name)}
        return bool(lacks)
