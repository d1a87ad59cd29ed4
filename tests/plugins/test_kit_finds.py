"""The conformance kit finds each broken promise: a check that can't fail checks nothing."""

import ast
import shutil
from pathlib import Path

import pytest
from support.distributions import install

from shinglefold.model.scheme import CanonOptions
from shinglefold.testing.languages.conformance import CHECKS, check_language
from shinglefold.testing.languages.subject import Subject

SOURCE = Path(__file__).parent / "broken" / "broken_languages.py"


def entry_points():
    for item in ast.parse(SOURCE.read_text("utf-8")).body:
        if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
            yield f"{item.name.lower()} = broken_languages:{item.name}"


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    """Install the broken languages as a distribution, for this process and those the kit starts."""
    shutil.copy(SOURCE, tmp_path)
    install(tmp_path, "broken-languages", *entry_points())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "broken_languages", raising=False)


@pytest.mark.long(every=8)
@pytest.mark.parametrize(
    ("code", "check", "says"),
    [
        ("wrongcode", "declares_itself", "the entry point is called 'wrongcode'"),
        ("uppercasemarks", "declares_itself", "must be lower case"),
        ("noversion", "declares_itself", "version() is empty"),
        ("onesidedsamples", "declares_itself", "samples need at least one pair"),
        ("unsettledfold", "declares_itself", "make it final at once"),
        ("raising", "is_total", "raised UnicodeEncodeError"),
        ("empty", "is_total", "return None to drop a word"),
        pytest.param("quadratic", "is_total", "return words over 64 as they are", marks=pytest.mark.long),
        ("counting", "is_pure", "has two answers"),
        ("counting", "has_two_agreeing_faces", "tokens and hashes"),
        ("growing", "is_idempotent_or_says_so", "declare idempotent = False"),
        ("dropping", "drops_only_what_options_ask", "no option asks for it: iron, old"),
        ("growing", "drops_only_what_options_ask", "only fold may change a word"),
        ("merging", "folds_and_tells_apart", "100% common tokens in unrelated texts"),
        ("parting", "folds_and_tells_apart", "should have equal tokens"),
        ("unevenly", "folds_and_tells_apart", "should have equal tokens when function words are dropped"),
        ("onlydropping", "folds_and_tells_apart", "add a pair that folds with all words kept"),
        ("racing", "is_thread_safe", "in one of several threads"),
        ("hashseeded", "is_the_same_in_every_process", "with another hash seed"),
        ("processbound", "is_fork_safe", "in a forked process"),
        ("fetching", "uses_no_network", "tried to use the network: socket."),
        ("hoarding", "has_bounded_memory", "bytes behind"),
        pytest.param("slow", "is_fast_enough", "fewer than 1,000", marks=pytest.mark.long),
    ],
)
def test_the_kit_finds(code, check, says):
    with pytest.raises(AssertionError) as failure:
        CHECKS[check](Subject(code, CanonOptions(), floor=1000.0))
    assert says in str(failure.value)


@pytest.mark.long
def test_a_sound_language_passes_though_it_is_installed_beside_broken_ones():
    assert check_language("sound").passed == tuple(CHECKS)


@pytest.mark.long
def test_one_call_tells_every_failure():
    with pytest.raises(AssertionError, match=r"(?s)fails \d+ checks:.*drops_only.*folds_and_tells_apart"):
        check_language("merging")
