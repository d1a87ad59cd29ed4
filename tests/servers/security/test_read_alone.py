"""A role with ``read`` on an index, and nothing else, searches it folded."""

import asyncio
import warnings
from contextlib import suppress

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException
from support.maintenance import PROPERTIES

from shinglefold import fold, setup
from shinglefold.engines.opensearch import AsyncOpenSearchEngine
from shinglefold.errors import PermissionDenied
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions

INDEX = "public-pages"
#: Ties, and an order that is the same for everybody.
BODY = {"query": {"match_all": {}}, "sort": [{"id": "asc"}], "size": 7}


@pytest.fixture
def folded(engine_of, users, site, scheme) -> FoldedSearch:
    return FoldedSearch(engine_of(users["reader"]), scheme, tiebreaker="id")


def without_time(answer):
    return {name: value for name, value in answer.items() if name != "took"}


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, FoldOptions()),
        ({"from": 7}, FoldOptions(window=10)),
        ({"size": 20}, FoldOptions(window=10, members=5)),
        ({}, FoldOptions(explain=True)),
        ({}, FoldOptions(linkage="connected")),
        ({"size": 0}, FoldOptions()),
    ],
)
def test_pages_are_those_of_who_may_everything(site, folded, more, options):
    expected = site.folded.search(INDEX, {**BODY, **more}, options)
    assert without_time(folded.search(INDEX, {**BODY, **more}, options)) == without_time(expected)


def test_a_cursor_shows_every_group_once(site, folded):
    every = site.folded.search(INDEX, {**BODY, "size": 60})["hits"]["hits"]
    pages = list(folded.pages(INDEX, BODY))
    assert [hit["_id"] for page in pages for hit in page["hits"]["hits"]] == [hit["_id"] for hit in every]


def test_a_folded_client_needs_no_other_right_to_search(secured, site, users):
    """Without the right to read mappings nobody knows that an index is to be folded unasked."""
    user, made = users["reader"], secured.certificates
    client = OpenSearch(secured.url, http_auth=(user.name, user.password), ca_certs=str(made.authority))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = {name: one for name, one in client.search(index=INDEX, body=BODY).items() if name != "took"}
        assert without_time(fold(client).search(index=INDEX, body=BODY)) == own
        assert without_time(fold(client, always=True).search(index=INDEX, body=BODY)) == own
        page = fold(client).search(index=INDEX, body={**BODY, "ext": {"dedup": {}}})
    assert page["dedup"]["mode"] == "unfolded"
    assert "can't be read" in page["dedup"]["mode_reason"]
    with pytest.warns(UserWarning, match="may not be read"), pytest.raises(AuthorizationException):
        fold(client).index(index=INDEX, body={"title": "x"})


@pytest.fixture
def folding(connection, users, site) -> str:
    """An index that was set up to fold every search, which only its mappings say."""
    name = "public-folding"
    if not site.engine.index_exists(name):
        setup(connection(users["chief"]), name, text=["title", "body"], fold=True, properties=PROPERTIES)
    return name


def test_a_search_that_is_not_folded_without_the_recipe_is_logged_once(secured, folding, users, caplog):
    made = secured.certificates

    def client_of(name: str) -> OpenSearch:
        user = users[name]
        return OpenSearch(secured.url, http_auth=(user.name, user.password), ca_certs=str(made.authority))

    assert fold(client_of("chief")).search(index=folding, body={})["dedup"]["mode"] == "window"
    assert not caplog.records
    for always in (False, True):
        client = fold(client_of("reader"), always=always)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                assert "dedup" not in client.search(index=folding, body={})
                with suppress(AuthorizationException):
                    client.msearch(body=[{"index": folding}, {}])
        (told,) = [one.getMessage() for one in caplog.records if one.name == "shinglefold.gateway"]
        assert f"may not read the mappings of '{folding}'" in told
        assert "indices:admin/mappings/get" in told
        caplog.clear()


def test_several_searches_at_once(site, folded):
    searches = [(INDEX, BODY), (INDEX, {**BODY, "from": 7}), ("secret-pages", {})]
    *answers, refused = folded.msearch(searches)
    assert isinstance(refused, PermissionDenied)
    for (index, body), answer in zip(searches, answers, strict=False):
        assert without_time(answer) == without_time(site.folded.search(index, body))


def test_asynchronously_too(connection, users, site, scheme):
    async def search():
        async with AsyncOpenSearchEngine(connection(users["reader"])) as engine:
            folded = AsyncFoldedSearch(engine, scheme, tiebreaker="id")
            return await folded.search(INDEX, BODY), await folded.msearch([(INDEX, BODY), (INDEX, BODY)])

    alone, several = asyncio.run(search())
    expected = without_time(site.folded.search(INDEX, BODY))
    assert [without_time(answer) for answer in (alone, *several)] == [expected] * 3


def test_a_header_tells_the_version_to_who_may_not_ask_for_it(engine_of, users, site):
    reader = engine_of(users["reader"])
    assert reader.info() == site.engine.info()
    assert reader.tiebreaker() == site.engine.tiebreaker() == "_shard_doc"


def test_documents_of_another_scheme_are_still_told_apart(site, folded, scheme):
    # The mappings would have said so at once; without them every fingerprint does.
    from shinglefold.registry import make_scheme

    other = FoldedSearch(folded._engine, make_scheme("classic"), tiebreaker="id")
    counters = other.search(INDEX, {**BODY, "size": 60})["dedup"]
    assert counters["other_schemes"] == {scheme.id: 60}
