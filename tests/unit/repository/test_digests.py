"""Digests of large files are remembered, and only for the file that they were made of."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from tritongen.repository import digests
from tritongen.repository.digests import LARGE_BYTES, file_sha256


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that is just large enough, and whose last change counts as long past."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "TICK_NS", 0)
    path = tmp_path / "large"
    path.write_bytes(bytes(LARGE_BYTES))
    return path


def read_by(work):
    """Bytes that this process read while it did something, and what came of it."""

    def count():
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    before = count()
    result = work()
    return count() - before, result


def test_a_second_look_reads_nothing(large):
    first, digest = read_by(lambda: file_sha256(large))
    second, again = read_by(lambda: file_sha256(large))
    assert first >= LARGE_BYTES > 100 * second
    assert again == digest == hashlib.sha256(bytes(LARGE_BYTES)).hexdigest()


def test_a_write_that_hides_itself_is_seen(large):
    """The size is the same, and the time of modification is set back; the time of the last change cannot be."""
    before = large.stat()
    file_sha256(large)
    with large.open("r+b") as file:
        file.write(b"1")
    os.utime(large, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_sha256(large) == hashlib.sha256(b"1" + bytes(LARGE_BYTES - 1)).hexdigest()


def test_a_file_that_has_only_just_changed_is_read_again(large, monkeypatch):
    monkeypatch.setattr(digests, "TICK_NS", 3_600_000_000_000)
    file_sha256(large)
    read, _ = read_by(lambda: file_sha256(large))
    assert read >= LARGE_BYTES


def test_what_is_remembered_can_be_lost_or_damaged(large, tmp_path):
    digest = file_sha256(large)
    (kept,) = (tmp_path / "cache/tritongen/digests").iterdir()
    for damage in (b"", b"\xff\xfe", b"1 2 3 4", kept.read_bytes()[:-1]):
        kept.write_bytes(damage)
        assert file_sha256(large) == digest
    kept.unlink()
    kept.parent.chmod(0o500)
    assert file_sha256(large) == digest
    kept.parent.chmod(0o700)


def test_the_number_of_remembered_files_has_an_end(large, tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_MOST_KEPT", 2)
    for number in range(4):
        path = tmp_path / f"copy{number}"
        with path.open("wb") as file:
            file.truncate(LARGE_BYTES)
        file_sha256(path)
        time.sleep(0.01)
    assert len(list((tmp_path / "cache/tritongen/digests").iterdir())) == 2
