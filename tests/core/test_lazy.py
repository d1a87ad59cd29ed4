"""Public names of packages: all there, imported when they are asked for, and no others."""

from importlib import import_module

import pytest


@pytest.mark.parametrize("package", ["shinglefold", "shinglefold.ingest"])
def test_every_public_name_is_there_and_no_other(package):
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = module.nonsense
