"""Report the groups of an index: by size, the largest, the newest, and where copies are."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, EngineError, chain, counted, shorten, suggest
from shinglefold.grouping.field_values import (
    date_doc_values,
    day_of,
    first_date,
    first_value,
    host_of,
    title_of,
)
from shinglefold.grouping.gate.protocol.pending_document import GROUP, LEADER, GateFields
from shinglefold.maintenance.scan import Scan, restart_on_expiry
from shinglefold.model.linkage import noted_linkage
from shinglefold.model.recipe import Recipe, stored_recipe
from shinglefold.model.stored_fingerprint import PENDING, is_placeholder, stored_parts
from shinglefold.options.validation import check_engine, check_str, check_type
from shinglefold.rerank.hits import check_complete
from shinglefold.rerank.index_fields import source_of
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, retry_unavailable

_HOSTS = ("host", "domain", "site", "url", "link")
_DATES = ("published_at", "published", "date", "created_at", "updated_at", "timestamp", "@timestamp")
#: Ranges of group sizes that are counted together; the last one has no end.
_SIZES = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 0))
_TITLE_LIMIT, _ADDRESSES = 200, ("url", "link")
#: The members of a listed group that are shown.
MEMBERS = 20
#: The number of groups whose members are read by one request.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class ReportFields:
    """The fields of hosts (or addresses), dates and titles; "" for the usual names."""

    host: str = ""
    date: str = ""
    title: str = "title"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The fields that may have the host; the first one that a document has counts."""
        return (self.host,) if self.host else _HOSTS

    @property
    def dates(self) -> tuple[str, ...]:
        """The fields that may have the date; the first one that a document has counts."""
        return (self.date,) if self.date else _DATES

    @property
    def shown(self) -> list[str]:
        """The fields that say what a document is."""
        return [*self.hosts, *self.dates, *_ADDRESSES, self.title]


@dataclass(frozen=True, slots=True)
class Size:
    """How many groups have a size, and how many documents these have."""

    size: str
    groups: int
    documents: int


@dataclass(frozen=True, slots=True)
class Share:
    """Documents of a host, language or month, and how many of them are copies."""

    value: str
    documents: int
    copies: int

    @property
    def share(self) -> float:
        """The share of copies, 0 to 1."""
        return self.copies / self.documents if self.documents else 0.0


@dataclass(frozen=True, slots=True)
class ListedMember:
    """A document of a group; ``url``, ``host`` and ``date`` are "" if it has none."""

    index: str
    id: str
    title: str
    url: str
    host: str
    date: str


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group: its number, its leader, and the date of its newest document, "" if it has none.

    ``members``: up to 20 documents, the leader first, then by date.
    """

    group: int
    documents: int
    index: str
    id: str
    title: str
    newest: str
    members: tuple[ListedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupReport:
    """The counts of an index.

    Attributes:
        without_group: documents without a number.
        shared: groups with several documents.
        copies: all documents of groups but one of each, the leader.
        led_by_several: groups with more than one leader.
        hosts, languages: those with most copies.
        months: all in order, by UTC.
        without: for each of the three, how many documents with a number lack a value.
        more: for each of the three, how many values are not listed.
        unread_dates: how many of the documents without a month have a date that cannot be read;
            ``unread_date``: one such date.
        placeholders: reserved ids of a gate, which are not documents yet.
        made_at: when the report was made, ISO 8601 in UTC.
        linkage: how groups were made, ``leader`` or ``connected``; "" if the indices of a name differ.
    """

    index: str
    documents: int
    without_group: int
    groups: int
    shared: int
    copies: int
    led_by_several: int
    sizes: tuple[Size, ...]
    largest: tuple[ListedGroup, ...]
    newest: tuple[ListedGroup, ...]
    hosts: tuple[Share, ...]
    languages: tuple[Share, ...]
    months: tuple[Share, ...]
    without: Mapping[str, int]
    more: Mapping[str, int]
    unread_dates: int = 0
    unread_date: str = ""
    placeholders: int = 0
    made_at: str = ""
    linkage: str = ""

    @property
    def listed(self) -> Mapping[int, "ListedGroup"]:
        """The groups that are listed, by number."""
        return {one.group: one for one in (*self.largest, *self.newest)}

    def with_members(self, members: Mapping[int, tuple["ListedMember", ...]]) -> "GroupReport":
        """Return the report with the members of listed groups, by number."""
        largest, newest = (
            tuple(replace(one, members=members[one.group]) for one in groups)
            for groups in (self.largest, self.newest)
        )
        return replace(self, largest=largest, newest=newest)

    @property
    def in_shared(self) -> int:
        """The documents of groups with copies."""
        return self.shared + self.copies

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        data = asdict(self)
        for name in ("hosts", "languages", "months"):
            data[name] = [{**asdict(one), "share": round(one.share, 4)} for one in getattr(self, name)]
        return data

    def left_out(self, kind: str) -> str:
        """Return a phrase on what ``hosts``, ``languages`` or ``months`` leave out; mostly ""."""
        without, more, one = self.without[kind], self.more[kind], kind.removesuffix("s")
        missing = f"{counted(without, 'document')} without a {one} left out" if without else ""
        beyond = f"{more:,} more {kind if more > 1 else one}" if more else ""
        return "; ".join(filter(None, (missing, beyond, self.unread() if kind == "months" else "")))

    def unread(self) -> str:
        """Return a phrase on dates that cannot be read; "" if there are none."""
        if not self.unread_dates:
            return ""
        several = counted(self.unread_dates, "document has a date", "documents have dates")
        return f"{several} that cannot be read, such as {self.unread_date!r}"


@dataclass(slots=True)
class _Group:
    size: int
    leaders: int
    index: str
    id: str
    title: str
    newest: float | None
    first: tuple[str, str, str]


_KINDS = ("hosts", "languages", "months")


@dataclass(slots=True)
class GroupTally:
    """Counts documents by group; a document that does not lead its group is a copy.

    Args:
        path: the path of the fingerprint field.
    """

    path: str
    names: ReportFields
    documents: int = 0
    placeholders: int = 0
    unread_dates: int = 0
    unread_date: str = ""
    _groups: dict[int, _Group] = field(default_factory=dict)
    _all: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in _KINDS})
    _copies: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in _KINDS})

    @property
    def fields(self) -> list[str]:
        """The fields of documents to read."""
        parts = [f"{self.path}.{part}" for part in (GROUP, LEADER, "lang", "scheme", PENDING)]
        return [*parts, *self.names.hosts, *self.names.dates, self.names.title]

    @property
    def grouped(self) -> int:
        """How many documents have a group number."""
        return sum(group.size for group in self._groups.values())

    def add(self, hits: Sequence[Mapping[str, Any]]) -> None:
        """Count the documents of a page."""
        gate_fields = GateFields(self.path)
        for hit in hits:
            source = hit["_source"]
            if "scheme" not in stored_parts(source, self.path) and is_placeholder(source, self.path):
                self.placeholders += 1
                continue
            self.documents += 1
            number = gate_fields.group(source)
            if number is not None:
                self._count(hit, number, gate_fields.leads(source))

    def _count(self, hit: Mapping[str, Any], number: int, leads: bool) -> None:
        written, when = first_date(hit, self.names.dates)
        if when is None and written not in (None, ""):
            self.unread_dates += 1
            self.unread_date = self.unread_date or shorten(str(written))
        language = str(stored_parts(hit["_source"], self.path).get("lang") or "")
        own = (host_of(first_value(hit, self.names.hosts)), language, day_of(when)[:7])
        title = title_of(hit, self.names.title)[:_TITLE_LIMIT]
        group = self._groups.get(number)
        # A group has several leaders if two writers did not see each other.
        original = leads and not (group and group.leaders)
        for kind, value in zip(_KINDS, own, strict=True):
            self._all[kind][value] += 1
            self._copies[kind][value] += not original
        if group is None:
            self._groups[number] = _Group(1, int(leads), hit["_index"], hit["_id"], title, when, own)
            return
        group.size += 1
        group.leaders += leads
        if original:
            group.index, group.id, group.title = hit["_index"], hit["_id"], title
        if when is not None and (group.newest is None or when > group.newest):
            group.newest = when

    def report(self, index: str, listed: int) -> GroupReport:
        """Return the counts, with up to ``listed`` values of each kind."""
        copies = {kind: counter.copy() for kind, counter in self._copies.items()}
        for group in self._groups.values():
            if not group.leaders:
                # The leader was deleted: the first document counts as the original.
                for kind, value in zip(_KINDS, group.first, strict=True):
                    copies[kind][value] -= 1
        shares = {
            kind: [
                Share(value, count, copies[kind][value]) for value, count in self._all[kind].items() if value
            ]
            for kind in _KINDS
        }
        values = {kind: len(found) for kind, found in shares.items()}
        for kind in ("hosts", "languages"):
            shares[kind] = nlargest(listed, shares[kind], key=lambda one: (one.copies, one.documents))
        groups = self._groups.items()
        dated = [item for item in groups if item[1].newest is not None and item[1].size > 1]
        several = [item for item in groups if item[1].size > 1]
        return GroupReport(
            index,
            self.documents,
            self.documents - self.grouped,
            len(groups),
            len(several),
            self.grouped - len(groups),
            sum(group.leaders > 1 for _, group in groups),
            tuple(_sizes(Counter(group.size for group in self._groups.values()))),
            tuple(_list_groups(nlargest(listed, several, key=lambda item: (item[1].size, item[0])))),
            tuple(_list_groups(nlargest(listed, dated, key=lambda item: (item[1].newest or 0.0, item[0])))),
            tuple(shares["hosts"]),
            tuple(shares["languages"]),
            tuple(sorted(shares["months"], key=lambda one: one.value)),
            {kind: self._all[kind][""] for kind in _KINDS},
            {kind: values[kind] - len(shares[kind]) for kind in _KINDS},
            self.unread_dates,
            self.unread_date,
            self.placeholders,
            datetime.now(UTC).isoformat(timespec="minutes"),
        )


def _sizes(counted: Counter[int]) -> Iterable[Size]:
    for low, high in _SIZES:
        within = [
            (size, count) for size, count in counted.items() if size >= low and (size <= high or not high)
        ]
        name = str(low) if low == high else f"{low}–{high}" if high else f"{low}+"
        yield Size(name, sum(count for _, count in within), sum(size * count for size, count in within))


def _list_groups(groups: Iterable[tuple[int, _Group]]) -> Iterable[ListedGroup]:
    for number, group in groups:
        newest = day_of(group.newest)
        yield ListedGroup(number, group.size, group.index, group.id, group.title, newest)


def make_report(
    engine: Engine,
    index: str,
    names: ReportFields | None = None,
    *,
    listed: int = 10,
    progress: Callable[[int, float], None] | None = None,
) -> GroupReport:
    """Read the group numbers of all documents and count them; exact on every engine.

    Args:
        names: the fields of host, date and title; None for the usual names.
        listed: the limit of groups, hosts and languages that are listed.

    Raises:
        ConfigError: the index was not set up for fingerprints, or no document has a group number.
        EngineError: a request to the engine failed.

    Cost: a scan that reads a few fields; some 300 bytes a group.
    """
    check_engine(engine)
    check_str("index", index)
    check_type("names", names, ReportFields, "ReportFields(…)", optional=True)
    recipe = Recipe.of(engine.mappings(index), index)
    several = list(engine.all_mappings(index).values())
    given = names or ReportFields()
    # By their paths in ``_source``: for a multi-field that of its parent.
    fields = ReportFields(
        *(name and source_of(several, name) for name in (given.host, given.date, given.title))
    )
    dates = date_doc_values(several, fields.dates)
    tally = restart_on_expiry(lambda: _scan(engine, index, GroupTally(recipe.field, fields), dates, progress))
    if not tally.grouped:
        first = [] if recipe.groups else [suggest("setup", index, groups=True)]
        raise ConfigError(
            f"no document of {index!r} has a group number: {chain([*first, suggest('regroup', index)])}"
        )
    made = tally.report(index, listed)
    members = _members(engine, index, recipe.field, fields, dates, made)
    recipes = filter(None, map(stored_recipe, several))
    linkages = {noted_linkage(one.get("grouping", {})) for one in recipes}
    return replace(made.with_members(members), linkage=linkages.pop() if len(linkages) == 1 else "")


def _members(  # noqa: PLR0917 - of one report
    engine: Engine, index: str, path: str, names: ReportFields, dates: Sequence[JSON], made: GroupReport
) -> dict[int, tuple[ListedMember, ...]]:
    """Return the members of the groups that are listed, by number."""
    numbers = list(made.listed)
    leaders = {number: (one.index, one.id) for number, one in made.listed.items()}
    found: dict[int, tuple[ListedMember, ...]] = {}
    for begin in range(0, len(numbers), _AT_ONCE):
        part = numbers[begin : begin + _AT_ONCE]
        bodies = [
            {
                # The leader scores, so that it is among the members of a large group.
                "query": {
                    "bool": {
                        "filter": [{"term": {f"{path}.{GROUP}": number}}],
                        "should": [{"ids": {"values": [leaders[number][1]]}}],
                    }
                },
                "size": MEMBERS,
                "_source": names.shown,
                "docvalue_fields": list(dates),
                **engine.can.unaltered,
            }
            for number in part
        ]
        answers = engine.msearch([(index, body, engine.can.newest) for body in bodies])
        for number, answer in zip(part, answers, strict=True):
            if isinstance(answer, EngineError):
                raise answer
            found[number] = members_of(check_complete(answer)["hits"]["hits"], leaders[number], names)
    return found


def members_of(
    hits: Iterable[Mapping[str, Any]], leader: tuple[str, str], names: ReportFields
) -> tuple[ListedMember, ...]:
    """Return the members of a group, the leader first, then by date.

    Args:
        leader: its index and id.
    """
    own = [_member(hit, names) for hit in hits]
    return tuple(sorted(own, key=lambda one: ((one.index, one.id) != leader, one.date, one.id)))


def _member(hit: Mapping[str, Any], names: ReportFields) -> ListedMember:
    url = str(first_value(hit, _ADDRESSES) or "")
    title = title_of(hit, names.title)[:_TITLE_LIMIT]
    day = day_of(first_date(hit, names.dates)[1])
    return ListedMember(hit["_index"], hit["_id"], title, url, host_of(first_value(hit, names.hosts)), day)


def _scan(
    engine: Engine,
    index: str,
    tally: GroupTally,
    dates: Sequence[JSON],
    progress: Callable[[int, float], None] | None,
) -> GroupTally:
    retry_unavailable(lambda: engine.refresh(index), DEFAULT_BACKOFF)
    scan = Scan(engine, index, fields=tally.fields, values=dates)
    place = scan.start()
    total, read = scan.total(place), 0
    for page in scan.pages(place):
        tally.add(page.hits)
        place, read = page.place, read + len(page.hits)
        if progress is not None:
            progress(read, read / total)
    scan.close(place)
    return tally
