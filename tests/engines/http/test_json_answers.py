"""Whatever a server answers is read as the clients themselves read it."""

import json

import pytest
from elasticsearch import SerializationError as NotJson
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy.exceptions import SerializationError as NotJsonEither

from shinglefold.engines.elasticsearch import ElasticsearchSerializer as OfElasticsearch
from shinglefold.engines.http.responses import read_json
from shinglefold.engines.opensearch import OpenSearchSerializer as OfOpenSearch

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OUT_OF_THE_ORDINARY = [
    '{"id": 123456789012345678901234567890}',
    '{"id": -123456789012345678901234567890}',
    '{"id": 18446744073709551615}',
    '{"half": "\\ud800 and text"}',
    '{"score": NaN}',
    '{"score": 1e400}',
    '{"twice": 1, "twice": 2}',
    '{"text": "\\u0000\x7f"}',
    "[" * 300 + "]" * 300,
]


def both(text):
    return OfOpenSearch().loads(text), OfElasticsearch().loads(text.encode())


@pytest.mark.parametrize("text", OUT_OF_THE_ORDINARY, ids=lambda text: text[:20])
def test_what_is_out_of_the_ordinary_is_read_as_before(text):
    assert [repr(value) for value in both(text)] == [repr(json.loads(text))] * 2


@given(VALUES)
def test_every_value_is_read_as_by_the_standard_library(value):
    text = json.dumps(value)
    assert [repr(found) for found in both(text)] == [repr(json.loads(text))] * 2


@pytest.mark.parametrize("text", ['{"hits": [', "<html>busy</html>", '{"took": 1,}'])
def test_what_is_no_json_is_refused_as_before(text):
    with pytest.raises(json.JSONDecodeError):
        read_json(text)
    with pytest.raises(NotJsonEither):
        OfOpenSearch().loads(text)
    with pytest.raises(NotJson):
        OfElasticsearch().loads(text.encode())


def test_bytes_that_are_no_text_are_refused_as_before():
    with pytest.raises(NotJson):
        OfElasticsearch().loads(b'{"a": "\xff"}')
