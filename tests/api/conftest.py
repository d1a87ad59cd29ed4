"""The example site in an embedded index, opened by the Python API."""

import pytest

import shinglefold
from shinglefold.examples import articles


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the index ``site``: groups numbered, elements of passages stored."""
    made = tmp_path_factory.mktemp("pages")
    shinglefold.setup(made, "site", text=["title", "body"], groups=True, passages=True)
    with shinglefold.open(made, "site") as site:
        assert site.index(articles()).indexed == 166
    return made


@pytest.fixture(scope="module")
def site(folder):
    """The open index."""
    with shinglefold.open(folder, "site") as opened:
        yield opened
