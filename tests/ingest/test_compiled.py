"""When a fingerprinter turns to compiled code: when it pays, and where there is any."""

import sys

import pytest

from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter, fingerprint
from shinglefold.registry import make_scheme

TEXTS = [article["body"] for article in articles()]


def test_it_turns_to_it_in_the_middle_of_a_run_and_nobody_notices(monkeypatch):
    pytest.importorskip("numba")
    plain = Fingerprinter(make_scheme())
    expected = plain.fingerprint(TEXTS * 2)
    assert not plain.canonicalizer.is_compiled
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", sum(map(len, TEXTS)))
    quick = Fingerprinter(make_scheme())
    quick.written(TEXTS[:3])
    assert quick.fingerprint(TEXTS) + quick.fingerprint(TEXTS) == expected
    assert quick.canonicalizer.is_compiled
    assert list(quick.written(TEXTS).bytes_of()) == list(plain.written(TEXTS).bytes_of())


def test_without_numba_numpy_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", 100)
    made = Fingerprinter(make_scheme())
    assert not made.compile()
    assert made.fingerprint(TEXTS[:5]) == Fingerprinter(make_scheme()).fingerprint(TEXTS[:5])
    assert not made.canonicalizer.is_compiled


def test_nothing_is_imported_or_compiled_for_a_few_texts():
    import subprocess

    code = (
        "import sys; from shinglefold.ingest import Fingerprinter; "
        "from shinglefold.registry import make_scheme; "
        "Fingerprinter(make_scheme()).fingerprint(['a few words']); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
