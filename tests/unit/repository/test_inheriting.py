"""What new files get of the repository that they are put into: its group, its ACL, permissions that a server can read, and times that a polling server sees."""

import contextlib
import errno
import os
import stat
import struct
import time
from pathlib import Path

import pytest

from tests.unit.repository.test_writing import entry, render
from tritongen.errors import RepositoryError
from tritongen.repository import SharedFile, apply_plan, make_plan
from tritongen.repository.inheriting import Heritage
from tritongen.repository.stamp import stamp_text
from tritongen.repository.system import exchange

PLAN = [("model.onnx", b"one")]
LABELS = [("labels.txt", b"cat")]
_SCRIPT = stamp_text("#!/bin/sh\n", "echo\n", {}, {}, {}).encode()


def another_group():
    """A group that this user may give files to; where it is in one only, its own."""
    return 12345 if os.geteuid() == 0 else next((group for group in os.getgroups() if group != os.getegid()), os.getegid())


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def modes(folder):
    return {path.relative_to(folder).as_posix(): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


def with_script(tmp_path, *entries):
    plan = make_plan(tmp_path / "repo", entries, shared=lambda _: {Path("build_plans.sh"): SharedFile(_SCRIPT)})
    return apply_plan(plan)


@pytest.mark.parametrize("setgid", [0, stat.S_ISGID])
def test_the_group_of_the_repository_is_that_of_all_in_it(tmp_path, umask, setgid):
    (tmp_path / "repo").mkdir()
    os.chown(tmp_path / "repo", -1, another_group())
    (tmp_path / "repo").chmod(0o775 | setgid)
    for weights in (b"one", b"two"):
        with_script(tmp_path, entry(tmp_path, "a", weights=weights), entry(tmp_path, artifacts=PLAN))
        made = [*(tmp_path / "repo").rglob("*"), tmp_path / "repo.artifacts", *(tmp_path / "repo.artifacts").rglob("*")]
        assert {path.name for path in made} >= {"a", "config.pbtxt", "1", "model.onnx", "build_plans.sh"}
        assert {path.stat().st_gid for path in made} == {another_group()}
        assert {path.stat().st_mode & stat.S_ISGID for path in made if path.is_dir()} == {setgid}
        assert modes(tmp_path / "repo.artifacts")["build_plans.sh"] == "0o755"


def test_a_file_that_stays_is_for_the_server_as_the_new_ones_are(tmp_path, umask):
    umask(0o077)
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, artifacts=PLAN))
    (tmp_path / "repo/a/mine.txt").write_text("mine")
    assert modes(tmp_path / "repo")["a/1/model.onnx"] == "0o600"
    umask(0o022)
    render(tmp_path, entry(tmp_path, "a", body="max_batch_size: 4\n"), entry(tmp_path, body="max_batch_size: 4\n", artifacts=PLAN))
    found = modes(tmp_path / "repo")
    assert {path: found[path] for path in ("a", "a/1", "a/1/model.onnx", "a/config.pbtxt")} == {
        "a": "0o755",
        "a/1": "0o755",
        "a/1/model.onnx": "0o644",
        "a/config.pbtxt": "0o644",
    }
    assert found["a/mine.txt"] == "0o600", "what others made is theirs"
    assert modes(tmp_path / "repo.artifacts")["m/model.onnx"] == "0o644"


@pytest.mark.parametrize("now", [0o077, 0o022])
def test_a_model_comes_with_its_permissions(tmp_path, umask, monkeypatch, now):
    """A render that is killed after the swap is not run again for this model: it is as the spec has it."""
    umask(0o077 - now + 0o022)
    render(tmp_path, entry(tmp_path, extra=LABELS, artifacts=PLAN))
    umask(now)
    seen = []

    def swap(fresh, target):
        done = exchange(fresh, target)
        seen.append(modes(tmp_path / "repo") | modes(tmp_path / "repo.artifacts"))
        return done

    monkeypatch.setattr("tritongen.repository.placing.exchange", swap)
    render(tmp_path, entry(tmp_path, body="max_batch_size: 4\n", extra=LABELS, artifacts=PLAN))
    assert seen == [modes(tmp_path / "repo") | modes(tmp_path / "repo.artifacts")]
    assert {seen[0][path] for path in ("m/labels.txt", "m/config.pbtxt", "m/model.onnx")} == {oct(0o666 & ~now)}


def acl(path):
    """The ACL of a file or folder; None where it has none."""
    try:
        return os.getxattr(path, "system.posix_acl_access")
    except OSError:
        return None


def give_default_acl(folder):
    """Have what is made in a folder be for a further user too; on a filesystem without ACLs there is none to be handed on."""
    # acl(5): tag, permissions and number of each entry: the owner, a user, the group, the mask, all others.
    entries = ((1, 7, -1), (2, 7, 4321), (4, 5, -1), (16, 7, -1), (32, 0, -1))
    with contextlib.suppress(OSError):
        os.setxattr(folder, "system.posix_acl_default", struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *each) for each in entries))


def assert_as_made_in_it(repository, *paths):
    """That files and folders have the permissions and ACLs of such as are made in the repository by hand."""
    folder, file = repository / "directly", repository / "directly/file"
    folder.mkdir()
    file.touch()
    for made in (repository / path for path in paths):
        alike = folder if made.is_dir() else file
        assert (acl(made), made.stat().st_mode) == (acl(alike), alike.stat().st_mode), made


def test_a_default_acl_of_the_repository_rules_what_is_made_in_it(tmp_path, umask):
    (tmp_path / "repo").mkdir()
    give_default_acl(tmp_path / "repo")
    umask(0o077)
    render(tmp_path, entry(tmp_path))
    assert_as_made_in_it(tmp_path / "repo", "m", "m/1", "m/config.pbtxt", "m/1/model.onnx")


def test_a_default_acl_that_came_later_rules_the_files_that_stay_too(tmp_path, umask):
    """The mask alone, without the ACL, would be the permissions of the group: the user who has an entry could not read the weights any more."""
    render(tmp_path, entry(tmp_path))
    give_default_acl(tmp_path / "repo")
    render(tmp_path, entry(tmp_path, body="max_batch_size: 4\n"))
    assert_as_made_in_it(tmp_path / "repo", "m", "m/1", "m/config.pbtxt", "m/1/model.onnx")


def test_a_default_acl_of_the_folder_above_is_not_for_a_repository_without_one(tmp_path, umask):
    (tmp_path / "repo").mkdir()
    give_default_acl(tmp_path)
    render(tmp_path, entry(tmp_path))
    assert_as_made_in_it(tmp_path / "repo", "m", "m/1", "m/config.pbtxt", "m/1/model.onnx")


def standings(folder):
    return {path.relative_to(folder).as_posix(): (path.stat().st_gid, oct(path.stat().st_mode), acl(path)) for path in folder.rglob("*")}


def fail_to_copy(tmp_path, _monkeypatch):
    (tmp_path / "z.source").write_bytes(b"another")


def fail_to_swap(_tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr("tritongen.repository.placing.exchange", refuse)


@pytest.mark.parametrize("fail", [fail_to_copy, fail_to_swap])
@pytest.mark.parametrize(("before", "now"), [(0o022, 0o077), (0o077, 0o022)])
def test_what_is_served_keeps_its_permissions_where_a_render_fails(tmp_path, umask, monkeypatch, before, now, fail):
    """Its files have a second name by then, beside the repository: what is done to that is done to them."""
    umask(before)
    render(tmp_path, entry(tmp_path, extra=LABELS, artifacts=PLAN), entry(tmp_path, "a"))
    was = standings(tmp_path)
    umask(now)
    os.chown(tmp_path / "repo", -1, another_group())
    give_default_acl(tmp_path / "repo")
    new = [entry(tmp_path, body="max_batch_size: 4\n", extra=LABELS, artifacts=PLAN), entry(tmp_path, "a", body="max_batch_size: 4\n"), entry(tmp_path, "z")]
    plan = make_plan(tmp_path / "repo", new)
    fail(tmp_path, monkeypatch)
    with pytest.raises(RepositoryError):
        apply_plan(plan)
    assert {path: what for path, what in standings(tmp_path).items() if path in was and path != "repo"} == {path: was[path] for path in was if path != "repo"}


def test_a_group_that_cannot_be_given_is_said(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo").chmod(0o2755)
    monkeypatch.setattr(Path, "chmod", refuse)
    applied = apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path, weights=b"two")]))
    assert "could not be given to 1 and 1 more (Operation not permitted)" in applied.notes[0]
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"two"


@pytest.mark.parametrize("setgid", [0, stat.S_ISGID])
def test_a_group_of_others_is_given_where_the_repository_hands_it_on(tmp_path, monkeypatch, setgid):
    (tmp_path / "place").mkdir()
    tmp_path.chmod(0o755 | setgid)
    for name in ("geteuid", "getegid"):
        monkeypatch.setattr(os, name, lambda: 4321)
    monkeypatch.setattr(os, "getgroups", list)
    assert Heritage.of(tmp_path, [tmp_path / "place"]).group == (tmp_path.stat().st_gid if setgid else None)


@pytest.mark.parametrize("ahead", ["1/model.onnx", "config.pbtxt", "mine.txt", "1", "."])
def test_a_server_that_polls_sees_the_change_where_times_are_ahead_of_the_clock(tmp_path, ahead):
    """Triton takes a model, and each version of it, for changed where its newest file or folder is newer than what it saw."""
    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo/m/mine.txt").write_text("mine")
    future_s = int(time.time()) + 1_000_000
    os.utime(tmp_path / "repo/m" / ahead, (future_s, future_s))
    for number, change in enumerate(({"body": "max_batch_size: 4\n"}, {"weights": b"other"})):
        render(tmp_path, entry(tmp_path, **change))
        for folder in ("repo/m", "repo/m/1"):
            assert (tmp_path / folder).stat().st_mtime > future_s + number
    assert ((tmp_path / "repo/m/mine.txt").stat().st_mtime == future_s) == (ahead == "mine.txt"), "it is nobody's but theirs"
