"""A process that is forked while another thread holds tantivy's lock does not keep it."""

import fcntl
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

import shinglefold.engines.embedded.store.snapshots  # noqa: F401 - closes the lock in forked processes


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_forked_process_holds_no_lock_that_a_thread_of_its_parent_held(tmp_path: Path):
    path = tmp_path / ".tantivy-meta.lock"
    held = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    context = multiprocessing.get_context("fork")
    started, ended = context.Event(), context.Event()
    child = context.Process(target=lambda: (started.set(), ended.wait()), daemon=True)
    child.start()
    try:
        assert started.wait(60)
        os.close(held)
        other = os.open(path, os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    finally:
        ended.set()
        child.join()
