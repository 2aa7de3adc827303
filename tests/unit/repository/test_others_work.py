"""What a render must not take from others, nor half do: backups, folders that nobody may list, mounts, what is written meanwhile, signals."""

import contextlib
import errno
import os
import re
import signal
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.repository.test_inheriting import give_default_acl
from tests.unit.repository.test_writing import entry, render, tree
from tritongen.errors import RepositoryError
from tritongen.repository import (
    Action,
    SharedFile,
    WantedFiles,
    apply_plan,
    config_sha256,
    conflicts,
    file_conflicts,
    make_plan,
    placing,
    plan_diffs,
    plan_files,
    system,
)
from tritongen.repository.stamp import stamp_text


@pytest.mark.parametrize("name", [".config.pbtxt.original", ".config.pbtxt.20261130", ".model.plan.20250101"])
def test_what_people_put_aside_is_theirs_however_old(tmp_path, name):
    render(tmp_path, entry(tmp_path))
    aside = tmp_path / "repo/m/1" / name
    aside.write_bytes(b"kept by somebody")
    os.utime(aside, (0, 0))
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.KEEP}
    assert render(tmp_path, entry(tmp_path, weights=b"other")) == {"m": Action.REPLACE}
    assert make_plan(tmp_path / "repo", [entry(tmp_path, "a")], prune=True).has_conflicts
    assert aside.read_bytes() == b"kept by somebody"


def test_what_cannot_be_listed_is_not_taken_for_nothing(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))
    private = tmp_path / "repo/m/private"
    private.mkdir()
    (private / "mine.txt").write_text("mine")
    scandir = os.scandir

    def refusing(path):
        if not isinstance(path, int) and Path(path) == private:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", refusing)
    for prune in (False, True):
        wanted = [entry(tmp_path, "a", weights=b"new"), *([] if prune else [entry(tmp_path, weights=b"other")])]
        with pytest.raises(RepositoryError, match=r"repo/m: TG040 model 'm' would be .*m/private: Permission denied"):
            render(tmp_path, *wanted, prune=prune)
        assert not (tmp_path / "repo/a").exists()
    applied = apply_plan(make_plan(tmp_path / "repo", wanted, prune=True), skip_conflicts=True)
    assert (applied.written, applied.pruned) == (("a",), ()), "the others need not wait for it"
    assert list(plan_diffs(applied.plan)) == []
    monkeypatch.undo()
    assert (private / "mine.txt").read_text() == "mine"
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"weights"


def test_a_file_that_cannot_come_along_is_a_conflict_of_its_model(tmp_path, monkeypatch):
    """Such as a plan that a container's user built and nobody else may read."""
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path))
    theirs = tmp_path / "repo/m/theirs"
    theirs.write_text("theirs")
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != theirs and access(path, mode))
    plan = make_plan(tmp_path / "repo", [entry(tmp_path, name, weights=b"other") for name in "am"], force=True)
    assert [change.action for change in plan.changes] == [Action.REPLACE, Action.CONFLICT]
    assert f"{theirs}: Permission denied, and it belongs into the new folder too" in conflicts(plan)[0].message


@pytest.mark.parametrize("head", ["", stamp_text("# header\n", "body\n", {}, {}, {})])
def test_a_text_of_any_size_is_not_read(tmp_path, head):
    """A sparse file takes no room on the disk; read, it would take all memory."""
    script, lead = (PurePosixPath(name) for name in ("build_plans.sh", "lead.yml"))
    wanted = WantedFiles(lead, "# header\n", "body\n", {PurePosixPath("other.txt"): "text\n"})
    (tmp_path / "repo.artifacts/m").mkdir(parents=True)
    (tmp_path / "repo/m").mkdir(parents=True)
    huge = [tmp_path / name for name in ("repo/m/config.pbtxt", "repo.artifacts/m/recipes.json", "repo.artifacts/build_plans.sh", "lead.yml", "other.txt")]
    for path in huge:
        with path.open("wb") as file:
            file.write(head.encode())
            file.truncate(1 << 38)
    assert config_sha256(tmp_path / "repo/m") == ""
    shared = {script: SharedFile(stamp_text("#!/bin/sh\n", "echo\n", {}, {}, {}).encode())}
    plan = make_plan(tmp_path / "repo", [entry(tmp_path, artifacts=[("recipes.json", b"[]")])], shared=lambda _: shared)
    assert len([*conflicts(plan), *file_conflicts(plan_files(tmp_path, wanted))]) == 4
    assert {diff.summary for diff in plan_diffs(plan)} >= {"274,877,906,944 bytes → 2 bytes, not shown"}
    assert make_plan(tmp_path / "repo", [], prune=True).changes == ()


def test_a_config_that_is_a_pipe_is_said_to_be_none(tmp_path):
    (tmp_path / "repo/m").mkdir(parents=True)
    os.mkfifo(tmp_path / "repo/m/config.pbtxt")
    with pytest.raises(RepositoryError, match=r"or not left as it was: its config\.pbtxt is no file"):
        render(tmp_path, entry(tmp_path))
    assert render(tmp_path, entry(tmp_path), force=True) == {"m": Action.REPLACE}


def test_folders_of_others_beside_the_repository_stay_though_they_are_empty(tmp_path):
    render(tmp_path, entry(tmp_path, artifacts=[("sub/model.onnx", b"one")]), entry(tmp_path, "a"))
    theirs = [tmp_path / "repo.artifacts" / name for name in ("m/cache/1", "a", "scratch")]
    for folder in theirs:
        folder.mkdir(parents=True)
    render(tmp_path, entry(tmp_path, artifacts=[("model.onnx", b"two")]), entry(tmp_path, "a", weights=b"other"))
    render(tmp_path, prune=True)
    assert [folder.is_dir() for folder in theirs] == [True] * 3
    assert sorted(path.name for path in tmp_path.joinpath("repo.artifacts").rglob("*")) == ["1", "a", "cache", "m", "scratch"]


def test_debris_of_a_build_that_cannot_be_removed_stops_nothing(tmp_path, monkeypatch):
    """A container's user made it, in a folder of its own."""
    render(tmp_path, entry(tmp_path))
    left = tmp_path / "repo/m/1/.tritongen-build-aB3xYz"
    left.write_bytes(b"half a plan")
    os.utime(left, (0, 0))
    unlink = Path.unlink

    def refuse(path, **options):
        if path == left:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    applied = apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path, "a"), entry(tmp_path)]))
    assert applied.notes == (f"{left}: what a killed build left cannot be removed: Permission denied",)
    assert applied.written == ("a",)


def test_what_cannot_be_removed_after_a_swap_is_said(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))
    monkeypatch.setattr("tritongen.repository.private.shutil.rmtree", lambda *_, **__: None)
    applied = apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path, weights=b"other")]))
    (left,) = tmp_path.glob(".repo.tritongen-*")
    assert applied.notes == (f"{left}: what was replaced could not all be removed; the next render of user {system.owner_of(left)}, or of root, tries again",)
    monkeypatch.undo()
    apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path, weights=b"other")]))
    assert not left.exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_place_for_artifacts_that_may_not_be_written_to_is_named(tmp_path, monkeypatch, there):
    """Such as beside a container's volume: the repository is staged in itself then, and its artifacts cannot be."""
    wanted = [entry(tmp_path, "a"), entry(tmp_path, artifacts=[("model.onnx", b"one")])]
    (tmp_path / "repo").mkdir()
    if there:
        (tmp_path / "repo.artifacts").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in (tmp_path, tmp_path / "repo.artifacts") or not mode & os.W_OK)
    with pytest.raises(RepositoryError, match=f"TG044 cannot {'write to' if there else 'make'} {tmp_path}/repo.artifacts, where sources of TensorRT plans lie"):
        render(tmp_path, *wanted)
    assert list((tmp_path / "repo").iterdir()) == []
    assert render(tmp_path, wanted[0]) == {"a": Action.CREATE}


def test_a_model_of_another_user_is_said_to_be_one(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))

    def refused(_, other):
        raise PermissionError(errno.EACCES, "Permission denied", str(other))

    monkeypatch.setattr(placing, "exchange", refused)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(RepositoryError, match="Permission denied") as error:
        render(tmp_path, entry(tmp_path, weights=b"other"))
    user = system.owner_of(tmp_path / "repo/m")
    assert error.value.diagnostics[0].hint.startswith(f"{tmp_path}/repo/m belongs to user {user}: render as that user or as root")


def test_whose_a_folder_is_that_nothing_can_be_made_in_is_said(tmp_path, monkeypatch):
    def refused(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "repo").mkdir()
    monkeypatch.setattr("tritongen.repository.private.Path.mkdir", refused)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(RepositoryError, match="TG044 cannot write the model repository: Permission denied") as error:
        apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path)]))
    assert error.value.diagnostics[0].hint.startswith(f"{tmp_path}/repo belongs to user {system.owner_of(tmp_path)}: render as that user or as root")


@pytest.mark.parametrize("sticky", [True, False])
def test_a_model_that_only_another_user_may_move_is_left_and_the_others_are_written(tmp_path, monkeypatch, sticky):
    render(tmp_path, entry(tmp_path), entry(tmp_path, "n"))
    root, user, access = tmp_path / "repo", system.owner_of(tmp_path), os.access
    if sticky:
        root.chmod(0o1777)
        (root / "n").rename(tmp_path / "n")  # what is there could not be moved either
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: (Path(path) != root / "m" or mode != os.W_OK) and access(path, mode))
    plan = make_plan(root, [entry(tmp_path, weights=b"other"), entry(tmp_path, "n", weights=b"other")], force=True)
    with pytest.raises(RepositoryError, match=f"{root}/m cannot be replaced: it belongs to user {user}, and may not be moved by this one"):
        apply_plan(plan)
    assert apply_plan(plan, skip_conflicts=True).written == ("n",)
    assert [(root / name / "1/model.onnx").read_bytes() for name in "mn"] == [b"weights", b"other"]


def test_a_mount_in_a_models_folder_is_a_conflict(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))
    cache = tmp_path / "repo/m/cache"
    monkeypatch.setattr("tritongen.repository.planning.mounts_below", lambda folder: [cache] if folder == tmp_path / "repo/m" else [])
    for force in (False, True):
        plan = make_plan(tmp_path / "repo", [entry(tmp_path, weights=b"other")], force=force)
        assert plan.changes[0].action is Action.CONFLICT
        assert plan.changes[0].reasons[0].startswith(f"{cache} is a mount")
    assert make_plan(tmp_path / "repo", [], prune=True).changes[0].action is Action.CONFLICT


def test_mounts_are_found_where_they_are():
    found = system.mounts_below(Path("/"))
    assert Path("/proc") in found
    assert Path("/") not in found


@pytest.fixture
def ends(monkeypatch):
    """Has SIGTERM raise KeyboardInterrupt, as the command line does."""

    def raising(_number, _frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, raising)
    yield raising
    signal.signal(signal.SIGTERM, before)


def standing(path):
    """What a folder is to whoever uses it."""
    found = path.stat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return found.st_uid, found.st_gid, oct(found.st_mode), found.st_mtime_ns, attributes


def test_folders_of_others_in_a_model_stay_as_they_are(tmp_path):
    """Such as a cache that another program fills: it must find its folder, and be able to write to it."""
    render(tmp_path, entry(tmp_path))
    folders = [tmp_path / "repo/m" / path for path in ("cache/deep", "cache", "empty/deep", "empty", "1/mine")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    (folders[0] / "file").write_text("mine")
    for number, folder in enumerate(folders):
        if os.geteuid() == 0:
            os.chown(folder, 4321, 4321)
        with contextlib.suppress(OSError):  # a filesystem without such attributes
            os.setxattr(folder, "user.mine", b"mine")
        folder.chmod(0o2777 if number else 0o555)
        os.utime(folder, (number + 1000, number + 1000))
    (tmp_path / "repo/m/7").mkdir()
    before = [standing(folder) for folder in folders]
    for weights in (b"one", b"two"):
        assert render(tmp_path, entry(tmp_path, weights=weights)) == {"m": Action.REPLACE}
        assert [standing(folder) for folder in folders] == before
    assert sorted(path.name for path in (tmp_path / "repo/m").iterdir()) == ["1", "cache", "config.pbtxt", "empty"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.source", "repo"], "also what may not be removed from a folder of theirs is gone"
    folders[0].chmod(0o755)


def test_a_folder_of_others_gets_no_acl_of_the_repository(tmp_path):
    (tmp_path / "repo").mkdir()
    give_default_acl(tmp_path / "repo")
    render(tmp_path, entry(tmp_path))
    mine = tmp_path / "repo/m/mine"
    mine.mkdir()
    for name in os.listxattr(mine):
        os.removexattr(mine, name)
    before = standing(mine)
    render(tmp_path, entry(tmp_path, weights=b"one"))
    assert standing(mine) == before


def test_an_empty_folder_of_others_keeps_a_model_from_being_pruned(tmp_path):
    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo/m/1/mine").mkdir()
    (tmp_path / "repo/m/2").mkdir()
    for force in (False, True):
        with pytest.raises(RepositoryError, match=re.escape(f"{tmp_path}/repo/m/1/mine was not made by tritongen")):
            render(tmp_path, prune=True, force=force)
    (tmp_path / "repo/m/1/mine").rmdir()
    assert render(tmp_path, prune=True) == {"m": Action.ORPHAN}
    assert not (tmp_path / "repo/m").exists()


@pytest.mark.parametrize("step", ["exchange", "sync_folder"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_model_comes_after_all_of_it(tmp_path, monkeypatch, ends, step, number):
    def artifacts(text):
        return [("model.onnx", text), ("recipes.json", text)]

    render(tmp_path, entry(tmp_path, body="max_batch_size: 1\n", artifacts=artifacts(b"one")))
    real = getattr(placing, step)

    def interrupted(*arguments):
        result = real(*arguments)
        signal.raise_signal(number)
        return result

    monkeypatch.setattr(placing, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        render(tmp_path, entry(tmp_path, body="max_batch_size: 2\n", artifacts=artifacts(b"two")))
    monkeypatch.undo()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == [signal.default_int_handler, ends]
    assert "max_batch_size: 2" in (tmp_path / "repo/m/config.pbtxt").read_text()
    assert tree(tmp_path / "repo.artifacts/m") == {"model.onnx": b"two", "recipes.json": b"two"}
    assert render(tmp_path, entry(tmp_path, body="max_batch_size: 2\n", artifacts=artifacts(b"two"))) == {"m": Action.KEEP}


@pytest.mark.parametrize("name", ["config.pbtxt", "mine.txt", "1/model.plan"])
@pytest.mark.parametrize("prune", [False, True])
def test_what_is_written_while_files_are_staged_is_not_lost(tmp_path, monkeypatch, name, prune):
    """Staging takes minutes where weights are large, and neither people nor builders of plans hold the lock."""
    render(tmp_path, entry(tmp_path))
    plan = make_plan(tmp_path / "repo", [] if prune else [entry(tmp_path, weights=b"other")], prune=prune)

    def meanwhile(_):
        (tmp_path / "repo/m" / name).write_text("written meanwhile")

    monkeypatch.setattr("tritongen.repository.apply.sync_filesystem", meanwhile)
    with pytest.raises(RepositoryError, match="repo/m: TG049 somebody wrote into the model's folder") as error:
        apply_plan(plan)
    assert error.value.diagnostics[0].consequence == "nothing was changed"
    assert (tmp_path / "repo/m" / name).read_text() == "written meanwhile"
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"weights"


def test_models_before_one_that_was_written_to_are_in_place(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path))
    plan = make_plan(tmp_path / "repo", [entry(tmp_path, "a", weights=b"other"), entry(tmp_path, weights=b"other")])
    monkeypatch.setattr("tritongen.repository.apply.sync_filesystem", lambda _: (tmp_path / "repo/m/mine.txt").write_text("mine"))
    with pytest.raises(RepositoryError) as error:
        apply_plan(plan)
    assert error.value.diagnostics[0].consequence == "a is in place; everything else is as it was"
    monkeypatch.undo()
    assert render(tmp_path, entry(tmp_path, "a", weights=b"other"), entry(tmp_path, weights=b"other")) == {"a": Action.KEEP, "m": Action.REPLACE}
    assert (tmp_path / "repo/m/mine.txt").read_text() == "mine"
