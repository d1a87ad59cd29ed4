"""The example site, opened once a module."""

from contextlib import closing

import pytest

import shinglefold
from shinglefold.examples import temporary_index


@pytest.fixture(scope="module")
def site():
    folder = temporary_index("site")
    with closing(shinglefold.open(folder, "site")) as opened:
        yield opened
