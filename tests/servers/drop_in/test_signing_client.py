"""Folded clients on real servers: what they write is signed."""

import asyncio
import contextlib
import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.clients import helpers, plain
from support.drop_in import FIELD, MAPPINGS, OTHER, TEXT, search, signed, stored

import shinglefold
from shinglefold import fold
from shinglefold.model.stored_fingerprint import without_fingerprint


def test_documents_are_those_of_index(kit):
    client, index = kit.client, kit.names.written
    document = {"title": "Brücke", "body": TEXT, "views": 3}
    forged = {**document, FIELD: {"digest": "forged", "scheme": "sf3"}}
    expected = signed(kit, document)
    assert expected[FIELD]["signature"]
    answer = plain(client.index(index=index, id=kit.of("one"), body=forged))
    assert (answer["_id"], answer["result"]) == (kit.of("one"), "created")
    client.create(index=index, id=kit.of("two"), body=document)
    made = plain(client.index(index=index, body=document))["_id"]
    for id_ in (kit.of("one"), kit.of("two"), made):
        assert kit.engine.get(index, id_)["_source"] == expected
    with pytest.raises(Exception, match=r"version_conflict|document already exists"):
        client.create(index=index, id=kit.of("two"), body=document)
    assert plain(client.delete(index=index, id=kit.of("one")))["result"] == "deleted"


def test_updates_sign_the_merged_document(kit):
    client, index = kit.client, kit.names.written
    document = {"title": "Brücke", "body": TEXT, "views": 3}
    client.index(index=index, id=kit.of("up"), body=document)

    def check(
        body: dict[str, Any], becomes: dict[str, Any], id_: str = "up", result: str = "updated"
    ) -> None:
        assert plain(client.update(index=index, id=kit.of(id_), body=body))["result"] == result
        left = {name: value for name, value in stored(kit, id_)[FIELD].items() if value is not None}
        assert without_fingerprint(stored(kit, id_), FIELD) == becomes
        assert left == signed(kit, becomes)[FIELD]

    check({"doc": {"views": 4}}, {**document, "views": 4})
    check({"doc": {"views": 4}}, {**document, "views": 4}, result="noop")
    check({"doc": {"body": TEXT}}, {**document, "views": 4}, result="noop")
    check({"doc": {"body": OTHER, FIELD: {"digest": "forged"}}}, {**document, "views": 4, "body": OTHER})
    # Too little text for a signature: no part of the old fingerprint is left.
    check({"doc": {"body": "", "title": "x"}}, {"title": "x", "body": "", "views": 4})
    check({"doc": {"body": TEXT}, "doc_as_upsert": True}, {"body": TEXT}, "new", "created")
    check({"doc": {"body": OTHER}, "doc_as_upsert": True}, {"body": OTHER}, "new")
    check({"doc": {"views": 1}, "upsert": {"title": TEXT}}, {"title": TEXT}, "newer", "created")
    for name in ("up", "new", "newer"):
        client.delete(index=index, id=kit.of(name))


def test_fingerprints_are_renewed_after_scripts(kit):
    client, index = kit.client, kit.names.written
    document = {"title": TEXT, "views": 3}
    for name in ("s1", "s2"):
        client.index(index=index, id=kit.of(name), body=document, routing="r" if name == "s2" else None)

    def script(source: str, **params: Any) -> dict[str, Any]:
        return {"script": {"source": source, "lang": "painless", "params": params}}

    try:
        answer = plain(client.update(index=index, id=kit.of("s1"), body=script("ctx._source.views = 9")))
    except kit.errors.any as error:
        pytest.skip(f"no scripts: {error}")
    # Its text is that of before, so nothing is written after the script.
    assert answer["result"] == "updated"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = script("ctx._source.title = params.title", title=OTHER)
        client.update(index=index, id=kit.of("s1"), body=new, refresh=True)
        found = kit.plain.search(index=index, body={"query": {"ids": {"values": [kit.of("s1")]}}})
        assert found["hits"]["hits"][0]["_source"] == signed(kit, {"title": OTHER, "views": 9})
        version = kit.plain.get(index=index, id=kit.of("s1"))
        again = client.update(
            index=index, id=kit.of("s1"), body=script("ctx._source.title = params.t", t=TEXT)
        )
        stored_as = kit.plain.get(index=index, id=kit.of("s1"))
        assert stored_as["_version"] == version["_version"] + 2
        assert [again[name] for name in ("_version", "_seq_no")] == [
            stored_as[name] for name in ("_version", "_seq_no")
        ]
        of = {"_index": index}
        lines = [
            {"update": {**of, "_id": kit.of("s1")}}, new,
            {"update": {**of, "_id": kit.of("s2"), "routing": "r"}}, new,
            {"update": {**of, "_id": kit.of("s3")}}, {**new, "upsert": {"title": TEXT}},
            {"update": {**of, "_id": kit.of("s1")}}, {"doc": {"views": 1}},
            {"update": {**of, "_id": kit.of("absent")}}, new,
            {"update": {**of, "_id": kit.of("s2"), "routing": "r"}}, script("ctx.op = 'delete'"),
            {"update": {**of, "_id": kit.of("s3")}}, script("ctx.op = 'none'"),
        ]  # fmt: skip
        items = plain(client.bulk(**kit.lines("operations", lines), refresh=True))["items"]
    assert [one["update"]["status"] for one in items] == [200, 200, 201, 200, 404, 200, 200]
    assert stored(kit, "s1") == signed(kit, {"title": OTHER, "views": 1})
    assert stored(kit, "s3") == signed(kit, {"title": TEXT})
    for name in ("s1", "s3"):
        client.delete(index=index, id=kit.of(name))


def test_a_bulk_keeps_its_order_and_its_failures(kit):
    client, index = kit.client, kit.names.written
    of = {"_index": index}
    bulk = [
        {"index": {**of, "_id": kit.of("1")}}, {"title": TEXT},
        {"create": {**of, "_id": kit.of("2")}}, {"title": OTHER, FIELD: {"digest": "forged"}},
        {"create": {**of, "_id": kit.of("2")}}, {"title": TEXT},
        {"update": {**of, "_id": kit.of("1")}}, {"doc": {"title": OTHER}},
        {"update": {**of, "_id": kit.of("absent")}}, {"doc": {"title": OTHER}},
        {"update": {**of, "_id": kit.of("3")}}, {"doc": {"title": TEXT}, "doc_as_upsert": True},
        {"update": {**of, "_id": kit.of("3")}}, {"doc": {"title": OTHER}},
        {"index": {**of, "_id": kit.of("4")}}, {"title": TEXT, "views": "many"},
        {"index": {**of, "_id": kit.of("5")}}, {"title": TEXT, "_id": "5"},
        {"delete": {**of, "_id": kit.of("absent")}},
        {"index": {**of, "_id": kit.of("6")}}, {"title": TEXT, FIELD: {"mine": 1}},
        {"index": {"_index": kit.names.bare, "_id": kit.of("7")}}, {"title": TEXT},
    ]  # fmt: skip
    answer = plain(client.bulk(**kit.lines("operations", bulk), refresh=True))
    assert answer["errors"]
    items = [
        (verb, item["_id"].partition("-")[2], item["status"])
        for one in answer["items"]
        for verb, item in one.items()
    ]
    assert items == [
        ("index", "1", 201), ("create", "2", 201), ("create", "2", 409), ("update", "1", 200),
        ("update", "absent", 404), ("update", "3", 201), ("update", "3", 200), ("index", "4", 400),
        ("index", "5", 400), ("delete", "absent", 404), ("index", "6", 400), ("index", "7", 201),
    ]  # fmt: skip
    for id_ in ("1", "2", "3"):
        assert stored(kit, id_)[FIELD] == signed(kit, {"title": OTHER})[FIELD]
    assert FIELD not in stored(kit, "7", kit.names.bare)
    for id_ in ("1", "2", "3"):
        client.delete(index=index, id=kit.of(id_))


def test_the_gate_of_an_index_decides_about_what_is_written(kit, server, new_index):
    index = new_index(MAPPINGS)
    shinglefold.setup(server.url, index, text=["title", "body"], languages=[], gate="refuse")
    client, other = kit.client, kit.names.bare
    third = "Am Freitag öffnet das Hallenbad, und der Eintritt ist für Kinder bis zum Ende der Ferien frei."

    def refused(write: Any) -> tuple[int, dict[str, Any]]:
        with pytest.raises(kit.errors.any) as caught:
            write()
        error = caught.value
        body = error.info if kit.product == "opensearch" else error.body
        return (error.status_code if kit.product == "opensearch" else error.meta.status), body["error"]

    made = plain(client.index(index=index, id="1", body={"title": TEXT}, refresh=True))
    assert (made["result"], made["_index"], made["_primary_term"]) == ("created", index, 1)
    assert search(client, index, {"query": {"match_all": {}}})["hits"]["total"]["value"] == 1
    again = plain(client.index(index=index, id="1", body={"title": TEXT, "views": 2}))
    assert again["result"] == "updated"
    for write in (
        lambda: client.index(index=index, body={"title": f"{TEXT} Heute."}),
        lambda: client.create(index=index, id="2", body={"title": f"Heute: {TEXT}"}),
        lambda: client.index(index=index, id="2", body={"title": f"{TEXT} Heute."}, routing="a"),
    ):
        status, error = refused(write)
        assert (status, error["type"]) == (409, "near_duplicate_exception")
        assert (error["like"]["_index"], error["like"]["_id"]) == (index, "1")
        assert 0.5 < error["like"]["resemblance"] <= 1
    status, error = refused(lambda: client.create(index=index, id="1", body={"title": OTHER}))
    assert (status, error["type"]) == (409, "version_conflict_engine_exception")
    status, error = refused(
        lambda: client.index(index=index, id="1", body={"title": OTHER}, if_seq_no=1, if_primary_term=1)
    )
    assert (status, "setup" in error["reason"]) == (400, True)
    status, error = refused(
        lambda: client.update(index=index, id="9", body={"doc": {}, "upsert": {"title": OTHER}})
    )
    assert (status, "upsert" in error["reason"]) == (400, True)
    bulk = [
        {"index": {"_index": index}}, {"title": f"{TEXT} Ja."},
        {"create": {"_index": index, "_id": "3"}}, {"title": OTHER},
        {"create": {"_index": index, "_id": "3"}}, {"title": third},
        {"index": {"_index": other, "_id": kit.of("4")}}, {"title": OTHER},
        {"index": {"_index": index, "_id": "5"}}, {"title": f"{OTHER} Nein."},
        {"index": {"_index": index, "_id": "6", "version": 7, "version_type": "external"}}, {"title": third},
        {"index": {"_index": index, "_id": "7", "routing": "a"}}, {"title": third},
        {"index": {"_index": index, "_id": "7", "routing": "a"}}, {"title": third, "views": "many"},
        {"delete": {"_index": index, "_id": "3"}},
        {"index": {"_index": index, "_id": "8"}}, {"title": f"{OTHER} Nein."},
        {"update": {"_index": index, "_id": "8"}}, {"doc": {"views": 3}},
        {"update": {"_index": index, "_id": "9"}}, {"doc": {"title": OTHER}, "doc_as_upsert": True},
    ]  # fmt: skip
    with pytest.warns(UserWarning, match="the gate of"):
        answer = plain(client.bulk(**kit.lines("operations", bulk), refresh=True))
    items = [(verb, one["_id"], one["status"]) for item in answer["items"] for verb, one in item.items()]
    assert answer["errors"] is True
    assert items[0][0::2] == ("index", 409)
    assert items[1:] == [
        ("create", "3", 201), ("create", "3", 409), ("index", kit.of("4"), 201), ("index", "5", 409),
        ("index", "6", 400), ("index", "7", 201), ("index", "7", 400), ("delete", "3", 200),
        ("index", "8", 201), ("update", "8", 200), ("update", "9", 400),
    ]  # fmt: skip
    likes = [
        next(iter(item.values()))["error"].get("like", {}).get("_id")
        for item in answer["items"]
        if "error" in next(iter(item.values()))
    ]
    assert likes == ["1", None, "3", None, None, None]
    hits = search(client, index, {"query": {"match_all": {}}})["hits"]["hits"]
    assert sorted(hit["_id"] for hit in hits) == ["1", "7", "8"]
    shinglefold.setup(server.url, index, text=["title", "body"], gate="none")
    free = kit.wrapped(fold(kit.given))
    assert plain(free.index(index=index, id="2", body={"title": TEXT}))["result"] == "created"


def test_of_near_copies_written_at_once_one_is_stored(kit, server, new_index):
    index = new_index(MAPPINGS)
    shinglefold.setup(server.url, index, text=["title"], languages=[], gate="refuse")
    texts = [f"{TEXT} {number}" for number in range(6)]

    def write(text: str) -> int:
        try:
            kit.client.index(index=index, body={"title": text})
        except kit.errors.any as error:
            return error.status_code if kit.product == "opensearch" else error.meta.status
        return 201

    if kit.awaited:

        async def each() -> list[Any]:
            made = (kit.folded.index(index=index, body={"title": text}) for text in texts)
            return await asyncio.gather(*made, return_exceptions=True)

        found = kit.loop.run_until_complete(each())
        statuses = [409 if isinstance(one, kit.errors.any) else 201 for one in found]
        assert all(not isinstance(one, Exception) or isinstance(one, kit.errors.any) for one in found), found
    else:
        with ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(write, texts))
    assert sorted(statuses) == [201, 409, 409, 409, 409, 409]


def test_the_clients_helpers_sign_what_they_stream_and_scan_it(kit):
    own, index = helpers(kit.product), kit.names.written
    ids = [kit.of(f"p{number}") for number in range(20)]
    actions = [{"_index": index, "_id": id_, "title": f"{number} {TEXT}"} for number, id_ in enumerate(ids)]
    actions += [{"_op_type": "update", "_index": index, "_id": ids[0], "doc": {"title": OTHER}}]
    query = {"query": {"ids": {"values": ids}}}
    if kit.awaited:

        async def stream() -> list[Any]:
            return [one async for one in own.async_streaming_bulk(kit.folded, actions, chunk_size=7)]

        async def scan() -> list[Any]:
            return [hit async for hit in own.async_scan(kit.folded, index=index, query=query)]

        done = kit.loop.run_until_complete(stream())
        kit.engine.refresh(index)
        hits = kit.loop.run_until_complete(scan())
    else:
        done = list(own.streaming_bulk(kit.folded, actions, chunk_size=7))
        done += list(own.parallel_bulk(kit.folded, actions[1:20], thread_count=4, chunk_size=5))
        kit.engine.refresh(index)
        hits = list(own.scan(fold(kit.given, always=True), index=index, query=query))
    assert all(succeeded for succeeded, _ in done)
    assert sorted(hit["_id"] for hit in hits) == sorted(ids)
    for hit in hits:
        title = OTHER if hit["_id"] == ids[0] else f"{ids.index(hit['_id'])} {TEXT}"
        assert hit["_source"] == signed(kit, {"title": title})
    for id_ in ids:
        kit.plain.delete(index=index, id=id_)


def test_signed_actions_are_sent_by_other_means(kit):
    index, bare = kit.names.written, kit.names.bare
    actions = [
        {"_index": index, "_id": kit.of("a1"), "title": TEXT, FIELD: {"digest": "forged"}},
        {
            "_op_type": "create",
            "_index": index,
            "_id": kit.of("a2"),
            "_routing": "r",
            "_source": {"title": OTHER},
        },
        {"_index": bare, "_id": kit.of("a3"), "title": TEXT},
        {
            "_op_type": "update",
            "_index": index,
            "_id": kit.of("a1"),
            "doc": {"views": 1, FIELD: {"digest": "x"}},
        },
        {"_op_type": "delete", "_index": bare, "_id": kit.of("a3")},
        {"_id": kit.of("a4"), "title": OTHER},
    ]

    def make(given: Any) -> list[Any]:
        made = shinglefold.signed(kit.folded, given, index)
        if not kit.awaited:
            return list(made)

        async def collect() -> list[Any]:
            return [one async for one in made]

        return kit.loop.run_until_complete(collect())

    made = make(iter(actions))
    assert [made[2], made[4]] == [actions[2], actions[4]]
    own = helpers(kit.product)
    if kit.awaited:
        done, failed = kit.loop.run_until_complete(own.async_bulk(kit.given, made, refresh=True))
    else:
        done, failed = own.bulk(kit.given, made, refresh=True)
    assert (done, failed) == (6, [])
    assert stored(kit, "a1") == signed(kit, {"title": TEXT, "views": 1}) | {"views": 1}
    assert kit.plain.get(index=index, id=kit.of("a2"), routing="r")["_source"] == signed(
        kit, {"title": OTHER}
    )
    assert stored(kit, "a4") == signed(kit, {"title": OTHER})
    with pytest.warns(UserWarning, match="send updates by the folded client"):
        (update,) = make(
            [{"_op_type": "update", "_index": index, "_id": kit.of("a1"), "doc": {"title": OTHER}}]
        )
    assert update["doc"] == {"title": OTHER}
    with pytest.raises(shinglefold.errors.InputError, match="metadata field"):
        make([{"_index": index, "_id": "b", "_source": {"title": TEXT, "_id": "b"}}])
    with pytest.raises(shinglefold.errors.ConfigError, match="fold"):
        shinglefold.signed(kit.given, actions)
    # Actions are read as they are needed.
    if not kit.awaited:
        endless = ({"_index": index, "title": f"{TEXT} {number}"} for number in itertools.count())
        first = next(iter(shinglefold.signed(kit.folded, endless)))
        assert first["_source"] == signed(kit, {"title": f"{TEXT} 0"})
    for name in ("a1", "a4"):
        kit.client.delete(index=index, id=kit.of(name))


def test_aliases_templates_and_what_cannot_be_signed(kit):
    client, index = kit.client, kit.names.written
    alias, templated = f"{index}-alias", kit.of(f"{index}-of-template")
    kit.plain.indices.put_alias(index=index, name=alias)
    client.index(index=alias, id=kit.of("by-alias"), body={"title": TEXT})
    assert stored(kit, "by-alias") == signed(kit, {"title": TEXT})
    kit.engine.refresh(index)
    body = {"query": {"ids": {"values": [kit.of("by-alias")]}}, "ext": {"dedup": {}}}
    assert search(client, alias, body)["dedup"]["groups"] == 1
    mappings = kit.engine.mappings(index)
    template = {"index_patterns": [f"{templated}*"], "template": {"mappings": mappings}}
    kit.plain.indices.put_index_template(name=templated, body=template)
    try:
        client.index(index=templated, id=kit.of("first"), body={"title": TEXT})
        assert stored(kit, "first", templated) == signed(kit, {"title": TEXT})
        upsert = {"doc": {"title": OTHER}, "doc_as_upsert": True}
        update = [{"update": {"_index": f"{templated}-2", "_id": kit.of("first")}}, upsert]
        assert not client.bulk(**kit.lines("operations", update))["errors"]
        assert stored(kit, "first", f"{templated}-2") == signed(kit, {"title": OTHER})
        absent = contextlib.suppress(kit.errors.any)
        copy = {"source": {"index": kit.names.bare}, "dest": {"index": index}}
        with pytest.warns(UserWarning, match="reindex writes documents"), absent:
            client.reindex(body=copy)
        script = {"script": {"source": "ctx._source.views = 1"}}
        with pytest.warns(UserWarning, match="update by query"), absent:
            client.update_by_query(index=templated, body=script)
        with warnings.catch_warnings(), absent:
            warnings.simplefilter("error", UserWarning)
            client.update_by_query(index=templated)
    finally:
        kit.plain.indices.delete_index_template(name=templated)
        for name in kit.engine.all_mappings(f"{templated}*"):
            kit.engine.delete_index(name)


def test_concurrent_updates_leave_the_fingerprint_of_the_text(kit):
    if not kit.awaited:
        return
    index = kit.names.written
    kit.client.index(index=index, id=kit.of("race"), body={"title": TEXT})

    async def race() -> None:
        titles = (
            {"title": f"{TEXT} {number}"} if number % 2 else {"body": f"{OTHER} {number}"}
            for number in range(4)
        )
        await asyncio.gather(
            *(kit.folded.update(index=index, id=kit.of("race"), body={"doc": doc}) for doc in titles)
        )

    kit.loop.run_until_complete(race())
    document = stored(kit, "race")
    assert document[FIELD] == signed(kit, without_fingerprint(document, FIELD))[FIELD]
