"""Whatever comes in, nothing crashes, hangs or gets lost; ``make fuzz`` throws a hundred times as much."""

import random
import re
import time
import zlib
from pathlib import Path

import pytest
from support.fuzz.__main__ import main as long_run
from support.fuzz.run import LIMIT, canonicalize, throw
from support.fuzz.spoil import spoil_bytes
from support.fuzz.targets import CSV, LINES, Targets
from support.servers.choose import examples

from shinglefold.cli.main import main
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition

#: New inputs each day would make CI fail by chance; the long run takes other seeds.
SEED = 20261121
KINDS = (
    *("jsonl", "csv", "html", "pages", "pipelines", "conditions", "bodies", "fingerprints", "cursors"),
    "dead letters",
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory) -> Targets:
    return Targets.make(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind", KINDS)
def test_malformed_inputs_are_refused_or_read_and_never_crash(targets, kind):
    count = examples(250)
    (told,) = throw({kind: targets.all()[kind]}, count, SEED)
    assert told.broken == ()
    assert told.count == count
    assert told.p99 <= told.longest < LIMIT * 1e3


def test_every_kind_is_thrown(targets):
    assert set(targets.all()) == set(KINDS)


@pytest.mark.long
def test_no_text_is_too_odd_to_be_fingerprinted(scheme, canonicalizer):
    fingerprinter = Fingerprinter(scheme, canonicalizer)
    count = examples(10_000)
    told = canonicalize(fingerprinter, canonicalizer, count, SEED)
    assert told.broken == ()
    assert told.count == count


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.csv"])
def test_a_command_ends_with_an_exit_code_that_fits(tmp_path: Path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    data = LINES if name.endswith("jsonl") else CSV
    for number in range(examples(12)):
        Path(name).write_bytes(spoil_bytes(data, random.Random(f"{name} {SEED} {number}")))
        code = main(["index", name, "--index", f"i{number}", "--workers", "1", "--json"])
        out, err = capsys.readouterr()
        assert code in {0, 1, 2, 3}, (number, err)
        assert "fault of shinglefold" not in err, (number, err)
        assert ('"failed": 0' in out) == (code == 0) or code in {1, 2}, (number, out)


def test_inputs_are_made_again_by_their_seed():
    one, other = (spoil_bytes(LINES, random.Random("a seed")) for _ in range(2))
    assert zlib.crc32(one) == zlib.crc32(other)
    assert one != LINES


def test_a_target_that_breaks_a_promise_is_found(scheme):
    def broken(chance: random.Random) -> None:
        if chance.random() < 0.1:
            Pipeline.from_json(default_definition(), scheme).steps[99]

    (told,) = throw({"broken": broken}, 200, SEED)
    assert 0 < len(told.broken) < 200
    assert all(re.match(rf"broken {SEED} \d+: IndexError", one) for one in told.broken)


def test_an_input_that_hangs_is_found(monkeypatch):
    monkeypatch.setattr("support.fuzz.run.LIMIT", 1)
    (told,) = throw({"hanging": lambda _: time.sleep(30)}, 1, SEED)
    assert told.broken == (f"hanging {SEED} 0: Hangs: longer than 1 s",)


def test_the_long_run_ends_with_one_when_a_promise_is_broken(monkeypatch, capsys):
    def broken(_: random.Random) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(Targets, "all", lambda _: {"broken": broken})
    monkeypatch.setattr("sys.argv", ["fuzz", "--inputs", "2", "--texts", "0"])
    assert long_run() == 1
    assert "broken 1 0: KeyError: 'lost'" in capsys.readouterr().out


def test_the_long_run_ends_with_nought_when_all_is_kept(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz", "--inputs", "9", "--texts", "50"])
    assert long_run() == 0
    said = capsys.readouterr().out
    assert [line.partition(":")[0] for line in said.splitlines()[:-1]] == [*KINDS, "texts"]
