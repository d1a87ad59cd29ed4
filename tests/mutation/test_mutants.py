"""Mutants are drawn by a seed, tried without a trace, and counted for what became of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.mutation.mutants import Mutant, count_places, sample
from support.mutation.table import change, justified, keep, kept, tell
from support.mutation.trial import Outcome

_ROOT = Path(__file__).resolve().parents[2]
_TRY = """
import json, sys
from support.mutation.mutants import sample
from support.mutation.trial import prepare, try_out
prepare()
order = sample("passages", 2, 7, "passages/shingle_positions.py")
for name in sys.argv[1:]:
    words = [[mutant and mutant.path, try_out(mutant, [name], 2.0).word] for mutant in (None, *order)]
    print(json.dumps(words))
"""


@pytest.fixture(scope="module")
def drawn() -> list[Mutant]:
    return sample("sketch", 12, 7)


@pytest.mark.long
def test_a_seed_draws_the_same_mutants_and_fewer_are_the_first_of_many(drawn):
    assert sample("sketch", 5, 7) == drawn[:5]
    assert sample("sketch", 5, 8) != drawn[:5]


@pytest.mark.long
def test_each_mutant_is_a_change_of_another_place(drawn):
    assert len({(one.path, one.first, one.last) for one in drawn}) == 12
    assert all(before != after for _, before, after in map(change, drawn))
    assert count_places("sketch") > 300


def test_no_mutant_is_of_a_type(tmp_path, monkeypatch):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "one.py").write_text("def least(a: int | None = 3) -> str | None:\n    return a\n")
    monkeypatch.setattr("support.mutation.mutants._ROOT", tmp_path)
    (only,) = sample("core", 9, 1)
    assert only.operator == "core/NumberReplacer"
    assert only.module == "shinglefold.one"


def test_results_are_kept_and_told_with_the_reason_of_those_that_may_survive(drawn, tmp_path, monkeypatch):
    file, (one, other, third) = tmp_path / "kept.jsonl", drawn[:3]
    for mutant, word in ((one, "survived"), (other, "survived"), (third, "survived"), (third, "killed")):
        keep(file, mutant, Outcome(word, 1.0, 2))
    monkeypatch.setattr("support.mutation.table.justified", lambda: {change(one): "no difference"})
    *survivors, row = tell("sketch", 99, kept(file).values())
    assert row == "| `sketch` | 99 | 3 | 1 | 1 | 1 |"
    assert sorted("no reason is known" in line for line in survivors) == [False, True]


def test_mutants_that_may_survive_are_still_in_the_code():
    for file, before, after in justified():
        lines = [line.strip() for line in (_ROOT / file).read_text("utf-8").splitlines()]
        assert before in " ".join(lines), (file, before)
        assert before != after


@pytest.mark.long
def test_tests_of_every_package_pass_without_a_mutant_wherever_trials_are_begun():
    program = (
        "import sys; from support.mutation.trial import prepare, try_out; prepare(); "
        "print(try_out(None, sys.argv[1:], 2.0).word)"
    )
    command = [sys.executable, "-c", program, "tests/grouping/test_rules.py"]
    done = subprocess.run(command, cwd=_ROOT / "tests", capture_output=True, text=True, check=True)
    assert done.stdout == "survived\n"


@pytest.mark.long
def test_tests_that_pass_let_a_mutant_survive_and_those_that_notice_kill_it():
    before = (_ROOT / "passages" / "shingle_positions.py").read_bytes()
    tests = ["tests/passages/test_shingle_positions.py", "tests/core/test_errors.py"]
    command = [sys.executable, "-c", _TRY, *tests]
    done = subprocess.run(command, cwd=_ROOT / "tests", capture_output=True, text=True, check=True)
    noticed, missed = map(json.loads, done.stdout.splitlines())
    assert (_ROOT / "passages" / "shingle_positions.py").read_bytes() == before
    assert noticed[0] == missed[0] == [None, "survived"]
    assert [word for _, word in noticed[1:]] == ["killed"] * 2
    assert [word for _, word in missed[1:]] == ["survived"] * 2
