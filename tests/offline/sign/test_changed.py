"""A source that changes while it is read ends the run: what would be written is of no file there ever was."""

import json
import os

import pytest

from shinglefold.errors import InputError
from shinglefold.offline.sign.run import sign

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "d.jsonl"
    rows = [json.dumps({"id": n, "body": f"text number {n} of many"}) for n in range(300)]
    path.write_text("\n".join(rows) + "\n")
    return path


def cut(path):
    os.truncate(path, path.read_bytes()[: path.stat().st_size // 2].rindex(b"\n") + 1)


def replaced(path):
    shorter = path.with_name("new")
    shorter.write_bytes(path.read_bytes().replace(b"number ", b""))
    shorter.replace(path)


def edited(path):
    path.write_bytes(path.read_bytes().replace(b"number 29", b"number 92"))


def cut_under_its_old_time(path):
    before = path.stat()
    cut(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def grown(path):
    path.write_bytes(path.read_bytes() + b'{"id": "new"}\n')


@pytest.mark.long(every=6)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("change", [cut, replaced, grown, edited, cut_under_its_old_time, os.remove])
def test_a_file_that_changes_is_told_and_no_file_made(make_job, source, tmp_path, change, workers):
    changes = iter([change])

    def progress(_):
        for one in changes:
            one(source)

    with pytest.raises(InputError, match=r"d\.jsonl changed while it was read|No such file"):
        sign(make_job(source, tmp_path / "out.jsonl", workers=workers), progress)
    assert not (tmp_path / "out.jsonl").exists()


def test_on_its_way_to_a_stream_too(make_job, source, tmp_path):
    changes = iter([cut])
    with (
        open(tmp_path / "out", "wb") as stream,
        pytest.raises(InputError, match="changed while it was read"),
    ):
        sign(make_job(source, stream), lambda _: [one(source) for one in changes])


def written(page):
    page.write_text("another text")


@pytest.mark.parametrize(
    ("name", "change"),
    [("00.txt", written), ("99.txt", written), ("00.txt", edited), ("00.txt", cut_under_its_old_time)],
)
def test_a_folder_whose_pages_change_is_told(make_job, tmp_path, name, change):
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(40):
        (pages / f"{number:02}.txt").write_text(f"text number {number + 29} of many\n" * 20)
    job = make_job(pages, tmp_path / "out.jsonl", fields=("body",))
    changes = iter([change])
    with pytest.raises(InputError, match="pages changed while it was read"):
        sign(job, lambda _: [one(pages / name) for one in changes])


def test_what_is_written_beside_the_pages_of_a_folder_changes_nothing(make_job, tmp_path):
    for number in range(40):
        (tmp_path / f"{number:02}.txt").write_text(f"text number {number} of many " * 20)
    (tmp_path / ".kept").mkdir()
    (tmp_path / "gone.txt").symlink_to("nowhere")
    letters = tmp_path / "dead.jsonl"
    job = make_job(tmp_path, tmp_path / "out.jsonl", fields=("body",), dead_letters=str(letters))

    def progress(_):
        for path in (letters, tmp_path / ".00.txt", tmp_path / ".kept" / "00.txt"):
            path.touch()

    assert sign(job, progress).signed == 40
