"""Whatever comes in, nothing crashes, hangs or gets lost; ``make fuzz`` throws a hundred times as much."""

import random
import zlib
from pathlib import Path

import pytest
from support.fuzz.run import canonicalize, throw
from support.fuzz.spoil import spoil_bytes
from support.fuzz.targets import CSV, LINES, Targets

from shinglefold.cli.main import main
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition

#: New inputs each day would make CI fail by chance; the long run takes other seeds.
SEED = 20261121
KINDS = (
    *("jsonl", "csv", "html", "pipelines", "conditions", "bodies", "fingerprints", "cursors"),
    "dead letters",
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory) -> Targets:
    return Targets.make(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_inputs_are_refused_or_read_and_never_crash(targets, kind):
    (told,) = throw({kind: targets.all()[kind]}, 250, SEED)
    assert told.count == 250


def test_every_kind_is_thrown(targets):
    assert set(targets.all()) == set(KINDS)


def test_no_text_is_too_odd_to_be_fingerprinted(scheme, canonicalizer):
    fingerprinter = Fingerprinter(scheme, canonicalizer)
    assert canonicalize(fingerprinter, canonicalizer, 10_000, SEED).count == 10_000


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.csv"])
def test_a_command_ends_with_an_exit_code_that_fits(tmp_path: Path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    data = LINES if name.endswith("jsonl") else CSV
    for number in range(12):
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


def test_a_target_that_breaks_a_promise_is_found(scheme, canonicalizer):
    def broken(chance: random.Random) -> None:
        if chance.random() < 0.1:
            Pipeline.from_json(default_definition(), scheme, canonicalizer).steps[99]

    with pytest.raises(AssertionError, match=r"broken \d+ \d+: IndexError"):
        list(throw({"broken": broken}, 200, SEED))
