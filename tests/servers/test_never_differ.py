"""What never differs keeps documents apart on servers, by every way of comparing fingerprints."""

import uuid

import pytest
from support.never_differ import WANTED, WAYS, cards, check_the_gate, groups_made_anew


@pytest.fixture(scope="module", params=[("numbers",), ("colour", "numbers")], ids="+".join)
def shop(request, server, engine):
    names, index = list(request.param), f"shinglefold-test-{uuid.uuid4().hex[:12]}"
    with cards(server.url, index, names) as folded:
        engine.refresh(index)
        yield folded, WANTED[request.param], names
    engine.delete_index(index)


@pytest.mark.parametrize("way", WAYS)
def test_what_never_differs_keeps_documents_apart(shop, way):
    index, wanted, _ = shop
    found, options = WAYS[way]
    assert found(index, options) == wanted


def test_the_gate_and_regrouping_heed_it(shop):
    index, wanted, names = shop
    check_the_gate(index, names)
    assert groups_made_anew(index) == wanted
