"""Public names of packages: all there, imported when they are asked for, and no others."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_LAZY = sorted(
    "shinglefold" if folder == "core" else f"shinglefold.{folder.replace('/', '.')}"
    for path in [*_ROOT.glob("*/__init__.py"), *_ROOT.glob("*/*/__init__.py")]
    if "lazy_attributes(" in path.read_text("utf-8")
    for folder in [path.parent.relative_to(_ROOT).as_posix()]
)


def test_packages_with_lazy_names_are_found():
    assert {"shinglefold", "shinglefold.ingest", "shinglefold.rerank"} <= set(_LAZY)


@pytest.mark.parametrize("package", _LAZY)
def test_every_public_name_is_there_and_no_other(package):
    module = import_module(package)
    for name in module.__all__ * 2:
        # A module of that name would be found first, once anybody has imported it.
        assert not isinstance(getattr(module, name), ModuleType), name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = module.nonsense
