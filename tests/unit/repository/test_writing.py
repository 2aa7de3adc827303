"""Entry → Plan → apply on a real folder."""

import errno
import os
import resource
import time
from pathlib import Path, PurePosixPath

import pytest

from tritongen.errors import RepositoryError
from tritongen.report.plans import format_plan
from tritongen.repository import Action, CopiedFile, Entry, KeptFile, SharedFile, TextFile, apply_plan, bytes_to_copy, file_sha256, make_plan, recover
from tritongen.repository.stamp import stamp_text

CONFIG = PurePosixPath("config.pbtxt")
MODEL = PurePosixPath("1/model.onnx")


def entry(tmp_path, name="m", weights=b"weights", body="max_batch_size: 0\n", extra=(), artifacts=()):
    source = tmp_path / f"{name}.source"
    source.write_bytes(weights)
    kept = {PurePosixPath(path): TextFile(content) for path, content in artifacts}
    model = {PurePosixPath("1/model.plan"): KeptFile()} if kept else {MODEL: CopiedFile(source, file_sha256(source))}
    files = {**model, **{PurePosixPath(path): TextFile(content) for path, content in extra}}
    return Entry(name, {**files, CONFIG: TextFile(stamp_text("# header\n", body, files, kept, {}).encode())}, kept)


def render(tmp_path, *entries, force=False, prune=False):
    plan = make_plan(tmp_path / "repo", entries, force=force, prune=prune)
    apply_plan(plan)
    return {change.name: change.action for change in plan.changes}


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_model_is_created_then_kept_then_replaced(tmp_path):
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.CREATE}
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.KEEP}
    assert render(tmp_path, entry(tmp_path, weights=b"WEIGHTS")) == {"m": Action.REPLACE}
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"WEIGHTS"


def test_nothing_is_left_beside_the_repository(tmp_path):
    render(tmp_path, entry(tmp_path))
    render(tmp_path, entry(tmp_path, weights=b"other"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.source", "repo"]


def test_a_file_that_is_no_longer_wanted_goes(tmp_path):
    render(tmp_path, entry(tmp_path, extra=[("warmup/input0", b"1")]))
    render(tmp_path, entry(tmp_path))
    assert sorted(tree(tmp_path / "repo")) == ["m/1/model.onnx", "m/config.pbtxt"]


def test_the_swapped_folder_is_never_half_of_one(tmp_path):
    """The old folder stays whole under another name while the new one takes its place: whoever has it open reads on."""
    render(tmp_path, entry(tmp_path))
    reader = os.open(tmp_path / "repo/m", os.O_RDONLY)
    weights = os.open("1/model.onnx", os.O_RDONLY, dir_fd=reader)
    render(tmp_path, entry(tmp_path, weights=b"new"))
    assert os.read(weights, 100) == b"weights"
    os.close(weights)
    os.close(reader)


@pytest.mark.parametrize("path", ["config.pbtxt", "1/model.onnx"])
def test_a_hand_edit_is_a_conflict_and_force_takes_it_over(tmp_path, path):
    render(tmp_path, entry(tmp_path))
    edited = tmp_path / "repo/m" / path
    edited.write_bytes(edited.read_bytes() + b"# mine\n")
    before = tree(tmp_path / "repo")
    with pytest.raises(RepositoryError, match="by hand") as error:
        render(tmp_path, entry(tmp_path, body="max_batch_size: 8\n"))
    assert "--force" in error.value.diagnostics[0].hint
    assert tree(tmp_path / "repo") == before
    assert render(tmp_path, entry(tmp_path, body="max_batch_size: 8\n"), force=True) == {"m": Action.REPLACE}
    assert b"mine" not in b"".join(tree(tmp_path / "repo").values())


def test_one_conflict_keeps_all_models_as_they_are(tmp_path):
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "b"))
    (tmp_path / "repo/b/config.pbtxt").write_text("mine")
    before = tree(tmp_path / "repo")
    with pytest.raises(RepositoryError):
        render(tmp_path, entry(tmp_path, "a", weights=b"new"), entry(tmp_path, "b", weights=b"new"))
    assert tree(tmp_path / "repo") == before


def test_a_folder_that_we_did_not_make_is_a_conflict(tmp_path):
    (tmp_path / "repo/m/1").mkdir(parents=True)
    (tmp_path / "repo/m/config.pbtxt").write_text("max_batch_size: 1\n")
    with pytest.raises(RepositoryError, match="not made by tritongen"):
        render(tmp_path, entry(tmp_path))


def test_an_empty_folder_holds_nobodys_work(tmp_path):
    (tmp_path / "repo/m/1").mkdir(parents=True)
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.REPLACE}
    assert sorted(tree(tmp_path / "repo")) == ["m/1/model.onnx", "m/config.pbtxt"]


def test_a_folder_whose_config_was_deleted_says_how_to_go_on(tmp_path):
    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo/m/config.pbtxt").unlink()
    with pytest.raises(RepositoryError, match=r"it has no config\.pbtxt") as error:
        render(tmp_path, entry(tmp_path))
    assert error.value.diagnostics[0].hint.startswith("without its config.pbtxt nothing says whose it is")
    assert render(tmp_path, entry(tmp_path), force=True) == {"m": Action.REPLACE}


def test_a_version_folder_that_is_a_link_is_a_conflict(tmp_path):
    """As is a folder where a file must be."""
    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo/m/1").rename(tmp_path / "elsewhere")
    (tmp_path / "repo/m/1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepositoryError, match="repo/m/1 is a link, which was not made by tritongen, and its place is needed"):
        render(tmp_path, entry(tmp_path))
    assert render(tmp_path, entry(tmp_path), force=True) == {"m": Action.REPLACE}
    assert not (tmp_path / "repo/m/1").is_symlink()
    assert (tmp_path / "elsewhere/model.onnx").is_file()
    (tmp_path / "repo/m/labels.txt").mkdir()
    (tmp_path / "repo/m/labels.txt/mine").write_text("mine")
    with pytest.raises(RepositoryError, match=r"labels\.txt/mine was not made by tritongen, and its place is needed"):
        render(tmp_path, entry(tmp_path, extra=[("labels.txt", b"a")]))


def test_line_ends_that_git_changed_are_no_edit(tmp_path):
    render(tmp_path, entry(tmp_path))
    config = tmp_path / "repo/m/config.pbtxt"
    config.write_bytes(config.read_bytes().replace(b"\n", b"\r\n"))
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.REPLACE}


def test_long_texts_are_known_as_ours(tmp_path, monkeypatch):
    """Somebody else's file of any length is not read where a text of ours belongs."""
    monkeypatch.setattr("tritongen.repository.comparing._HEAD_BYTES", 1000)
    long = "# one of thousands of lines\n" * 100
    script = PurePosixPath("build_plans.sh")

    def written(body):
        shared = {script: SharedFile(stamp_text("#!/bin/sh\n", body, {}, {}, {}).encode())}
        plan = make_plan(tmp_path / "repo", [entry(tmp_path, body=body)], shared=lambda _: shared)
        apply_plan(plan)
        return [change.action for change in (*plan.changes, *plan.shared)]

    assert written(long) == [Action.CREATE] * 2
    assert written(long) == [Action.KEEP] * 2
    assert written(f"{long}more\n") == [Action.REPLACE] * 2
    for path in (tmp_path / "repo/m/config.pbtxt", tmp_path / "repo.artifacts" / script):
        path.write_bytes(path.read_bytes() + b"mine")
    with pytest.raises(RepositoryError) as error:
        written(long)
    assert [finding.code for finding in error.value.diagnostics] == ["TG043"] * 2


def test_a_new_wording_of_the_header_is_no_edit(tmp_path):
    render(tmp_path, entry(tmp_path))
    config = tmp_path / "repo/m/config.pbtxt"
    config.write_text(config.read_text().replace("# header", "# another header"))
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.REPLACE}


def test_files_of_others_stay_through_a_replace(tmp_path):
    render(tmp_path, entry(tmp_path))
    (tmp_path / "repo/m/notes.txt").write_text("mine")
    (tmp_path / "repo/m/2").mkdir()
    (tmp_path / "repo/m/2/model.onnx").write_text("theirs")
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.KEEP}
    render(tmp_path, entry(tmp_path, weights=b"new"))
    assert tree(tmp_path / "repo/m")["notes.txt"] == b"mine"
    assert tree(tmp_path / "repo/m")["2/model.onnx"] == b"theirs"


def test_orphans_are_reported_and_pruned_only_if_we_made_them(tmp_path):
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "b"))
    (tmp_path / "repo/foreign").mkdir()
    (tmp_path / "repo/foreign/config.pbtxt").write_text("max_batch_size: 1\n")
    assert render(tmp_path, entry(tmp_path, "a")) == {"a": Action.KEEP, "b": Action.ORPHAN}
    assert (tmp_path / "repo/b").is_dir()
    render(tmp_path, entry(tmp_path, "a"), prune=True)
    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == ["a", "foreign"]


def test_an_orphan_that_holds_more_than_we_made_is_not_pruned(tmp_path):
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "b"))
    (tmp_path / "repo/b/notes.txt").write_text("mine")
    before = tree(tmp_path / "repo")
    for force in (False, True):
        with pytest.raises(RepositoryError, match=r"notes.txt was not made by tritongen") as error:
            render(tmp_path, entry(tmp_path, "a", weights=b"new"), prune=True, force=force)
        assert "move the files away" in error.value.diagnostics[0].hint
        assert tree(tmp_path / "repo") == before
    (tmp_path / "repo/b/notes.txt").unlink()
    (tmp_path / "repo/b/1/model.onnx").write_bytes(b"retrained in place")
    with pytest.raises(RepositoryError, match=r"model.onnx was changed by hand") as error:
        render(tmp_path, entry(tmp_path, "a"), prune=True)
    assert "--prune --force" in error.value.diagnostics[0].hint
    render(tmp_path, entry(tmp_path, "a"), prune=True, force=True)
    assert [path.name for path in (tmp_path / "repo").iterdir()] == ["a"]


def test_the_artifacts_of_an_orphan_go_with_it_and_nothing_beside_them(tmp_path):
    render(tmp_path, entry(tmp_path, "a", artifacts=[("model.onnx", b"one")]), entry(tmp_path, "b", artifacts=[("model.onnx", b"two")]))
    (tmp_path / "repo/b/1/model.plan").write_bytes(b"built from it")
    for made in ("timing.cache", "1/model.plan.manifest.json", "1/model.plan.log", "1/model.rtx.plan", "1/.tritongen-manifest-aB3xYz"):
        (tmp_path / "repo.artifacts/b" / made).parent.mkdir(exist_ok=True)
        (tmp_path / "repo.artifacts/b" / made).write_bytes(b"of the builder")
    (tmp_path / "repo.artifacts/b/notes.txt").write_text("somebody's")
    plan = make_plan(tmp_path / "repo", [entry(tmp_path, "a", artifacts=[("model.onnx", b"one")])], prune=True)
    assert f"{tmp_path}/repo.artifacts/b/notes.txt was not made by tritongen, and is left" in format_plan(apply_plan(plan).plan, done=True)
    assert sorted(tree(tmp_path / "repo.artifacts")) == ["a/model.onnx", "b/notes.txt"]
    assert not (tmp_path / "repo/b").exists()


def test_an_artifact_that_is_no_longer_wanted_goes_unless_it_was_edited(tmp_path):
    both = [("model.onnx", b"one"), ("weights.bin", b"data")]
    render(tmp_path, entry(tmp_path, artifacts=both))
    render(tmp_path, entry(tmp_path, artifacts=both[:1]))
    assert sorted(tree(tmp_path / "repo.artifacts")) == ["m/model.onnx"]
    (tmp_path / "repo.artifacts/m/model.onnx").write_bytes(b"edited")
    render(tmp_path, entry(tmp_path))
    assert tree(tmp_path / "repo.artifacts") == {"m/model.onnx": b"edited"}


def test_a_stamp_that_names_files_outside_of_its_folder_removes_nothing(tmp_path):
    """A repository can come from anywhere; what its stamps say is not obeyed beyond their own folders."""
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "b"))
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    config = tmp_path / "repo/b/config.pbtxt"
    lines = [f"# tritongen-{kind}: sha256:{file_sha256(precious)} {path}\n" for kind in ("file", "artifact") for path in ("../../precious", str(precious))]
    config.write_text(config.read_text().replace("# header\n", "# header\n" + "".join(lines)))
    render(tmp_path, entry(tmp_path, "a"), prune=True)
    assert precious.read_bytes() == b"mine"
    assert not (tmp_path / "repo/b").exists()


def test_a_folder_that_may_not_be_read_is_nobodys_orphan(tmp_path, monkeypatch):
    """Such as lost+found, at the top of a disk."""
    render(tmp_path, entry(tmp_path, "a"))
    (tmp_path / "repo/lost+found").mkdir()

    def refuse(path, *arguments, **keywords):
        if "lost+found" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path, *arguments, **keywords)

    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", refuse)
    assert render(tmp_path, entry(tmp_path, "a"), prune=True) == {"a": Action.KEEP}


def test_a_file_that_has_not_changed_is_not_copied_again(tmp_path):
    """New configs of a large model cost no copy: the file gets a second name, and loses the first."""
    render(tmp_path, entry(tmp_path))
    before = (tmp_path / "repo/m/1/model.onnx").stat()
    render(tmp_path, entry(tmp_path, body="max_batch_size: 4\n"))
    after = (tmp_path / "repo/m/1/model.onnx").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (before.st_ino, before.st_mtime_ns, 1)


def test_a_write_that_fails_on_the_way_leaves_the_old_state(tmp_path):
    """The limit on the size of files stands for a full disk, which a test cannot make everywhere; tests/system/test_disks.py does."""
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "b"))
    before = tree(tmp_path / "repo")
    fresh = [entry(tmp_path, "a", weights=b"new"), entry(tmp_path, "b", weights=bytes(100_000))]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(RepositoryError) as error:
            render(tmp_path, *fresh)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (found,) = error.value.diagnostics
    assert found.code == "TG044"
    assert "File too large: a, b need 98.1 KiB, and" in found.message
    assert found.consequence == "nothing was changed"
    assert "ulimit -f" in found.hint
    assert tree(tmp_path / "repo") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.source", "b.source", "repo"]


def test_an_interrupt_between_the_two_renames_puts_the_model_back(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))
    before = tree(tmp_path / "repo")
    rename = Path.rename

    def interrupted(path, target):
        if path.parent.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr("tritongen.repository.placing.exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        render(tmp_path, entry(tmp_path, weights=b"new"))
    assert tree(tmp_path / "repo") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.source", "repo"]


def test_a_plan_that_was_built_here_stays_until_its_source_changes(tmp_path):
    render(tmp_path, entry(tmp_path, artifacts=[("model.onnx", b"one")]))
    assert (tmp_path / "repo/m/1").is_dir(), "the version folder must be there for the builder"
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"one"
    (tmp_path / "repo/m/1/model.plan").write_bytes(b"plan")
    assert render(tmp_path, entry(tmp_path, artifacts=[("model.onnx", b"one")])) == {"m": Action.KEEP}
    render(tmp_path, entry(tmp_path, body="max_batch_size: 4\n", artifacts=[("model.onnx", b"one")]))
    assert (tmp_path / "repo/m/1/model.plan").read_bytes() == b"plan"
    render(tmp_path, entry(tmp_path, artifacts=[("model.onnx", b"two")]))
    assert not (tmp_path / "repo/m/1/model.plan").exists()


def test_a_config_that_was_replaced_by_a_link_is_a_conflict(tmp_path):
    render(tmp_path, entry(tmp_path))
    config = tmp_path / "repo/m/config.pbtxt"
    config.rename(tmp_path / "elsewhere.pbtxt")
    config.symlink_to(tmp_path / "elsewhere.pbtxt")
    with pytest.raises(RepositoryError, match=r"was replaced by a link, to .*elsewhere\.pbtxt"):
        render(tmp_path, entry(tmp_path))
    with pytest.raises(RepositoryError, match="was replaced by a link"):
        render(tmp_path, prune=True)
    render(tmp_path, entry(tmp_path), force=True)
    assert config.is_file()
    assert not config.is_symlink()
    assert (tmp_path / "elsewhere.pbtxt").is_file()


def test_a_source_in_the_repository_is_copied_too(tmp_path):
    """An exporter that writes there must not change what is served; only what we wrote ourselves gets a second name."""
    render(tmp_path, entry(tmp_path))
    source = tmp_path / "repo/exports/m.onnx"
    source.parent.mkdir()
    source.write_bytes(b"exported")
    made = Entry("m", {**entry(tmp_path).files, MODEL: CopiedFile(source, file_sha256(source))})
    render(tmp_path, made)
    source.write_bytes(b"rewritten in place")
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"exported"


def test_an_earlier_version_gets_a_second_name_and_is_held_against_its_digest(tmp_path):
    render(tmp_path, entry(tmp_path))
    served = tmp_path / "repo/m/1/model.onnx"
    first = served.stat().st_ino
    files = {PurePosixPath("2/model.onnx"): CopiedFile(served, file_sha256(served))}
    made = Entry("m", {**files, CONFIG: TextFile(stamp_text("# header\n", "max_batch_size: 0\n", files, {}, {}).encode())})
    plan = make_plan(tmp_path / "repo", [made])
    assert bytes_to_copy(plan) == 0
    apply_plan(plan)
    assert (tmp_path / "repo/m/2/model.onnx").stat().st_ino == first


def test_the_model_is_copied_and_not_linked(tmp_path):
    """An exporter that rewrites its file in place must not change the live model."""
    render(tmp_path, entry(tmp_path))
    (tmp_path / "m.source").write_bytes(b"rewritten in place")
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"weights"


def test_a_file_a_model_folder_and_a_folder_without_permission_are_refused(tmp_path):
    (tmp_path / "repo").write_text("a file")
    with pytest.raises(RepositoryError, match="must be a folder"):
        render(tmp_path, entry(tmp_path))
    (tmp_path / "repo").unlink()
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/config.pbtxt").write_text("")
    with pytest.raises(RepositoryError, match="TG042 this is a model's folder, not a model repository"):
        render(tmp_path, entry(tmp_path))
    with pytest.raises(RepositoryError, match="TG042 this is a version of a model, not a model repository") as error:
        make_plan(tmp_path / "repo/2", [entry(tmp_path)])
    assert error.value.diagnostics[0].hint == f"did you mean {tmp_path}?"


def test_a_machine_without_a_place_for_temporary_files_renders(tmp_path, monkeypatch):
    """Such as a container that is read-only but for the repository, started with the number of a user who has no home."""

    def none(*_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("tempfile.gettempdir", none)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tritongen.repository.digests.LARGE_BYTES", 1)
    monkeypatch.setattr("tritongen.repository.digests.TICK_NS", -1)  # a digest of a file of this moment would be kept, if there were a place
    recover(tmp_path / "repo")
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.CREATE}
    recover(tmp_path / "repo")
    assert render(tmp_path, entry(tmp_path)) == {"m": Action.KEEP}


def test_an_unwritable_place_is_one_finding(tmp_path):
    with pytest.raises(RepositoryError) as error:
        apply_plan(make_plan(Path("/proc/tritongen/repo"), [entry(tmp_path)]))
    assert error.value.diagnostics[0].code == "TG044"


def test_a_repository_behind_a_link_is_written_where_it_leads(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "repo").symlink_to(tmp_path / "real")
    render(tmp_path, entry(tmp_path))
    render(tmp_path, entry(tmp_path, weights=b"new"))
    assert (tmp_path / "repo").is_symlink()
    assert (tmp_path / "real/m/1/model.onnx").read_bytes() == b"new"


def test_where_folders_cannot_be_exchanged_the_swap_is_two_renames_and_said(tmp_path, monkeypatch):
    render(tmp_path, entry(tmp_path))

    class OldLibrary:
        """A C library from before renameat2."""

        def syncfs(self, descriptor):
            os.fsync(descriptor)
            return 0

    monkeypatch.setattr("tritongen.repository.system.ctypes.CDLL", lambda *_, **__: OldLibrary())
    applied = apply_plan(make_plan(tmp_path / "repo", [entry(tmp_path, weights=b"new")]))
    assert "absent for a moment" in applied.notes[0]
    assert (tmp_path / "repo/m/1/model.onnx").read_bytes() == b"new"


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_model_whose_folder_cannot_be_swapped_keeps_its_artifacts(tmp_path, monkeypatch, exchanges):
    """A mount on the model's folder: the kernel refuses its rename (EBUSY) when the artifacts have been placed."""
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, "m", artifacts=[("model.onnx", b"one"), ("sub/old.bin", b"old")]))
    before, beside = tree(tmp_path / "repo/m"), tree(tmp_path / "repo.artifacts")
    rename = Path.rename

    def refuse(*_):
        raise OSError(errno.EBUSY, "Device or resource busy", str(tmp_path / "repo/m"))

    monkeypatch.setattr("tritongen.repository.placing.exchange", lambda one, other: refuse() if exchanges and other.name == "m" else False)
    monkeypatch.setattr(Path, "rename", lambda path, target: refuse() if path == tmp_path / "repo/m" else rename(path, target))
    wanted = [entry(tmp_path, "a", weights=b"new"), entry(tmp_path, "m", artifacts=[("model.onnx", b"two"), ("new/new.bin", b"new")])]
    with pytest.raises(RepositoryError) as error:
        render(tmp_path, *wanted)
    (finding,) = error.value.diagnostics
    assert "mount of its own" in finding.hint
    assert finding.consequence == "a is in place; everything else is as it was"
    with pytest.raises(RepositoryError) as error:
        render(tmp_path, wanted[0], prune=True)
    assert error.value.diagnostics[0].consequence == "nothing was changed"
    assert (tree(tmp_path / "repo/m"), tree(tmp_path / "repo.artifacts")) == (before, beside)
    assert not (tmp_path / "repo.artifacts/m/new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.source", "m.source", "repo", "repo.artifacts"]


def test_nothing_is_left_of_a_script_when_the_disk_refuses_the_models(tmp_path, monkeypatch):
    made = entry(tmp_path, "m", artifacts=[("model.onnx", b"one")])
    script = stamp_text("#!/bin/sh\n", "echo\n", {}, {}, {}).encode()

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = make_plan(tmp_path / "repo", [made], shared=lambda recipes: {PurePosixPath("build_plans.sh"): SharedFile(script)})
    monkeypatch.setattr("tritongen.repository.apply.sync_filesystem", full)
    with pytest.raises(RepositoryError, match=r"m, build_plans\.sh need") as error:
        apply_plan(plan)
    assert error.value.diagnostics[0].consequence == "nothing was changed"
    assert [path.name for path in tmp_path.iterdir()] == ["m.source"]


def test_what_a_killed_build_left_is_carried_nowhere_and_goes(tmp_path):
    """No one can tell whose it is while it is young; after a day it is nobody's."""
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, artifacts=[("model.onnx", b"one")]))
    names = ("repo/m/1/.tritongen-build-aB3xYz", "repo/m/1/.tritongen-write-ab_3xyz9", "repo.artifacts/m/1/.tritongen-manifest-aB3xYz")
    left = [tmp_path / name for name in names]

    def killed(age_s):
        for path in left:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"half a plan")
            os.utime(path, (time.time() - age_s,) * 2)

    killed(3600)
    assert render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, artifacts=[("model.onnx", b"one")]))["m"] is Action.KEEP
    assert all(path.exists() for path in left)
    killed(25 * 3600)
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, artifacts=[("model.onnx", b"one")]))
    assert not any(path.exists() for path in left)
    killed(3600)
    render(tmp_path, entry(tmp_path, "a"), entry(tmp_path, artifacts=[("model.onnx", b"two")]))
    assert [path.exists() for path in left] == [False, False, True], "a new folder has none"
    killed(3600)
    render(tmp_path, entry(tmp_path, "a"), prune=True)
    assert not (tmp_path / "repo/m").exists()
    assert not (tmp_path / "repo.artifacts").exists()
