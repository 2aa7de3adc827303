"""Files beside a spec: written whole, known again, and never taken from somebody who changed them."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tritongen.errors import RepositoryError
from tritongen.repository import Action, FilePlan, WantedFiles, apply_files, held_files, plan_files, staged_files

LEAD = PurePosixPath("lead.yml")
OTHERS = {PurePosixPath("deep/er/a.txt"): "one\n", PurePosixPath("b.json"): "{}\n"}


def plan(root, body="services: {}\n", others=OTHERS, *, force=False, prune=False):
    return plan_files(root, WantedFiles(LEAD, "# header\n", body, others), force=force, prune=prune)


def actions(made):
    return {change.name: change.action for change in made.changes}


@pytest.fixture
def written(tmp_path):
    apply_files(plan(tmp_path))
    return tmp_path


def test_a_plan_writes_nothing_and_a_second_run_changes_nothing(tmp_path):
    made = plan(tmp_path / "new")
    assert set(actions(made).values()) == {Action.CREATE}
    assert not (tmp_path / "new").exists()
    apply_files(made)
    assert all((tmp_path / "new" / name).is_file() for name in ("lead.yml", "deep/er/a.txt", "b.json"))
    assert (tmp_path / "new/deep/er/a.txt").read_text() == "one\n"
    again = plan(tmp_path / "new")
    assert not again.would_change
    before = (tmp_path / "new/lead.yml").stat().st_mtime_ns
    apply_files(again)
    assert (tmp_path / "new/lead.yml").stat().st_mtime_ns == before
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["b.json", "deep", "lead.yml"]


def test_what_is_ours_is_replaced_and_the_rest_kept(written):
    made = plan(written, others={**OTHERS, PurePosixPath("b.json"): "[]\n"})
    assert actions(made) == {"deep/er/a.txt": Action.KEEP, "b.json": Action.REPLACE, "lead.yml": Action.REPLACE}
    apply_files(made)
    assert (written / "b.json").read_text() == "[]\n"


@pytest.mark.parametrize("name", ["lead.yml", "deep/er/a.txt", "b.json"])
def test_a_hand_edit_is_a_conflict_and_nothing_is_written(written, name):
    (written / name).write_text((written / name).read_text() + "mine\n")
    before = {path: path.read_text() for path in written.rglob("*") if path.is_file()}
    made = plan(written, "services: {a: {}}\n", {path: f"{text}more\n" for path, text in OTHERS.items()})
    assert actions(made)[name] is Action.CONFLICT
    with pytest.raises(RepositoryError) as caught:
        apply_files(made)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.location.path) == ("TG043", str(written / name))
    assert "a file of your own beside it" in finding.hint
    assert {path: path.read_text() for path in written.rglob("*") if path.is_file()} == before
    apply_files(plan(written, "services: {a: {}}\n", force=True))
    assert not plan(written, "services: {a: {}}\n").would_change


def test_a_checkout_with_other_line_ends_is_no_edit(written):
    for path in ("lead.yml", "b.json"):
        (written / path).write_bytes((written / path).read_bytes().replace(b"\n", b"\r\n"))
    assert actions(plan(written)) == {"deep/er/a.txt": Action.KEEP, "b.json": Action.KEEP, "lead.yml": Action.KEEP}
    assert actions(plan(written, "services: {x: {}}\n"))["lead.yml"] is Action.REPLACE


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_long_texts_are_known_as_ours(tmp_path, monkeypatch, end):
    """The dashboard of 2,100 models has 16 MiB; somebody else's file of that length is not read where a text of ours belongs."""
    monkeypatch.setattr("tritongen.repository.comparing._HEAD_BYTES", 1000)
    long = "a panel for each of thousands of models\n" * 100
    wanted = (long, {PurePosixPath("dashboard.json"): long})
    apply_files(plan(tmp_path, *wanted))
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", end))
    assert set(actions(plan(tmp_path, *wanted)).values()) == {Action.KEEP}
    assert set(actions(plan(tmp_path, f"{long}more", {PurePosixPath("dashboard.json"): f"{long}more"})).values()) == {Action.REPLACE}
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes() + b"mine")
    assert set(actions(plan(tmp_path, *wanted)).values()) == {Action.CONFLICT}


def test_a_carriage_return_that_ends_a_piece_is_no_edit(tmp_path):
    """Files are read in pieces of 1 MiB."""
    others = {PurePosixPath("b.json"): "x" * ((1 << 20) - 1) + "\n\r\r"}
    apply_files(plan(tmp_path, others=others))
    assert not plan(tmp_path, others=others).would_change
    (tmp_path / "b.json").write_bytes((tmp_path / "b.json").read_bytes().replace(b"\n", b"\r\n"))
    assert not plan(tmp_path, others=others).would_change


def test_somebody_elses_file_is_a_conflict(tmp_path):
    (tmp_path / "lead.yml").write_text("services: {theirs: {}}\n")
    (tmp_path / "b.json").write_text("theirs")
    made = plan(tmp_path)
    assert {name for name, action in actions(made).items() if action is Action.CONFLICT} == {"lead.yml", "b.json"}
    with pytest.raises(RepositoryError) as caught:
        apply_files(made)
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "file for a folder", "link for a folder"])
def test_a_place_that_cannot_be_taken_stays_one_with_force(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    if kind == "folder":
        (tmp_path / "b.json").mkdir()
    elif kind in ("link", "dangling link"):
        (tmp_path / "b.json").symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    elif kind == "file for a folder":
        (tmp_path / "deep").write_text("")
    else:
        (tmp_path / "deep").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepositoryError) as caught:
        apply_files(plan(tmp_path, force=True))
    assert [finding.code for finding in caught.value.diagnostics] == ["TG043"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_that_is_wanted_no_more_is_said_and_left(written):
    made = plan(written, others={PurePosixPath("b.json"): "{}\n"})
    (orphan,) = made.with_action(Action.ORPHAN)
    assert orphan.name == "deep/er/a.txt"
    apply_files(made)
    assert (written / "deep/er/a.txt").exists()


def test_a_deployment_for_which_there_is_no_room_is_not_begun(tmp_path, monkeypatch):
    made = plan(tmp_path / "folder", others={PurePosixPath("large"): "x" * 5000})
    monkeypatch.setattr("tritongen.repository.file_placing.bytes_free", lambda _: 1024)
    with pytest.raises(RepositoryError, match=r"TG044 there is not enough room for the deployment: its files need 5\.1 KiB, and 1\.0 KiB are free") as caught:
        apply_files(made)
    assert caught.value.diagnostics[0].hint.startswith("free 4.1 KiB or more")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_leaves_no_pieces(tmp_path):
    """A folder that may not be written to would do; root may write all the same, so files may be no larger than a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    made = plan(tmp_path / "folder", others={**OTHERS, PurePosixPath("large"): "x" * 5000})
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(RepositoryError) as caught:
            apply_files(made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [(finding.code, finding.location.path) for finding in caught.value.diagnostics] == [("TG044", str(tmp_path / "folder/large"))]
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RepositoryError) as caught:
        plan(tmp_path / "file")
    assert [(finding.code, finding.location.path) for finding in caught.value.diagnostics] == [("TG041", str(tmp_path / "file"))]


def test_what_is_removed_by_prune_is_ours_and_unedited(written):
    fewer = {PurePosixPath("b.json"): "{}\n"}
    apply_files(plan(written, others=fewer))
    # It is known for as long as it lies there.
    assert [change.name for change in plan(written, others=fewer).with_action(Action.ORPHAN)] == ["deep/er/a.txt"]
    (written / "deep/er/a.txt").write_text("mine\n")
    made = plan(written, others=fewer, prune=True)
    with pytest.raises(RepositoryError, match="TG043") as caught:
        apply_files(made)
    assert "would be removed" in caught.value.diagnostics[0].message
    (written / "deep/er/a.txt").write_text("one\n")
    (written / "deep/theirs.txt").write_text("theirs\n")
    apply_files(plan(written, others=fewer, prune=True))
    assert sorted(path.name for path in written.rglob("*")) == ["b.json", "deep", "lead.yml", "theirs.txt"]
    assert not plan(written, others=fewer).would_change


NEW = {PurePosixPath("deep/er/a.txt"): "two\n", PurePosixPath("b.json"): "[2]\n", PurePosixPath("more.txt"): "more\n"}


_KILLED = """\
import os, signal, sys
from pathlib import Path, PurePosixPath
from tritongen.repository import WantedFiles, plan_files, staged_files

root, after, contents = Path(sys.argv[1]), int(sys.argv[2]), eval(sys.argv[3])
others = {PurePosixPath(path): text for path, text in contents.items()}
put, left = Path.replace, iter(range(after))

def replace(path, target):
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(path, target)

wanted = WantedFiles(PurePosixPath("lead.yml"), "# header\\n", "services: {two: {}}\\n", others)
with staged_files(plan_files(root, wanted)) as staged:
    Path.replace = replace
    staged.place()
"""


def killed(root, after):
    """A process that is killed once it has put `after` of the files in their places."""
    contents = repr({str(path): text for path, text in NEW.items()})
    done = subprocess.run([sys.executable, "-c", _KILLED, str(root), str(after), contents], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("is_first", "after"), [(True, 2), (False, 1), (False, 3)])
def test_what_a_killed_render_wrote_is_no_edit_even_of_another_spec(tmp_path, is_first, after):
    if not is_first:
        apply_files(plan(tmp_path))
    killed(tmp_path, after)
    wanted = {**NEW, PurePosixPath("b.json"): "[3]\n", PurePosixPath("deep/er/a.txt"): "three\n"}
    assert plan(tmp_path, others=wanted).with_action(Action.CONFLICT) == ()
    apply_files(plan(tmp_path, others=wanted))
    assert not plan(tmp_path, others=wanted).would_change
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.json", "deep", "lead.yml", "more.txt"]


def test_an_edit_after_a_killed_render_is_one(written):
    killed(written, 2)
    (written / "b.json").write_text("mine\n")
    assert [change.name for change in plan(written).with_action(Action.CONFLICT)] == ["b.json"]


def test_everybody_may_read_what_containers_read(tmp_path):
    before = os.umask(0o077)
    try:
        apply_files(plan(tmp_path / "new"))
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"new": 0o755, "new/deep": 0o755, "new/deep/er": 0o755} | dict.fromkeys(("new/lead.yml", "new/b.json", "new/deep/er/a.txt"), 0o644)


def test_a_folder_that_another_render_holds_is_waited_for_and_then_said(written):
    holder = os.open(written, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with (
        pytest.raises(RepositoryError, match="another process has held the folder of the deployment for 0 seconds") as caught,
        held_files(FilePlan(written, (), wanted=WantedFiles(LEAD, "# header\n", "", {})), wait_s=0),
    ):
        pass
    assert [finding.code for finding in caught.value.diagnostics] == ["TG048"]
    os.close(holder)
    assert not plan(written).would_change


@pytest.mark.parametrize("name", ["lead.yml", "b.json"])
def test_an_edit_between_the_plan_and_the_writing_is_not_lost(written, name):
    made = plan(written, "services: {a: {}}\n", {path: f"{text}more\n" for path, text in OTHERS.items()})
    (written / name).write_text((written / name).read_text() + "mine\n")
    with pytest.raises(RepositoryError, match=f"{name}: TG043"):
        apply_files(made)
    assert (written / name).read_text().endswith("mine\n")
    assert (written / "deep/er/a.txt").read_text() == "one\n"


def test_an_edit_while_models_are_written_is_not_lost(written):
    made = plan(written, "services: {a: {}}\n", {path: f"{text}more\n" for path, text in OTHERS.items()})
    with held_files(made) as held, staged_files(held.plan) as staged:
        (written / "b.json").write_text("mine\n")
        with pytest.raises(RepositoryError, match=r"TG049 somebody wrote b\.json while the deployment was rendered"):
            staged.place()
    assert {path.name: path.read_text() for path in written.glob("*.*")} == {"b.json": "mine\n", "lead.yml": (written / "lead.yml").read_text()}
    assert (written / "deep/er/a.txt").read_text() == "one\n"
    assert actions(plan(written))["b.json"] is Action.CONFLICT


@pytest.mark.parametrize("after", range(5))
@pytest.mark.parametrize("kind", ["signal", "disk"])
def test_what_stops_on_the_way_is_all_or_nothing(written, monkeypatch, after, kind):
    """Else files that are new already would look like somebody's, to a render of another spec."""
    apply_files(plan(written, others={**OTHERS, PurePosixPath("gone/old.txt"): "old\n"}))
    before = {path: path.read_text() for path in written.rglob("*") if path.is_file()}
    replace, left = Path.replace, iter(range(after))

    def stopped(path, target):
        if "was" not in path.parts and next(left, None) is None:
            if kind == "disk":
                raise OSError(5, "Input/output error", str(path))
            signal.raise_signal(signal.SIGINT)
        return replace(path, target)

    made = plan(written, "services: {two: {}}\n", NEW, prune=True)
    with held_files(made) as held, staged_files(held.plan) as staged:
        monkeypatch.setattr(Path, "replace", stopped)
        if after < 4:
            with pytest.raises(RepositoryError if kind == "disk" else KeyboardInterrupt):
                staged.place()
        else:
            staged.place()
        monkeypatch.undo()
    whole = kind == "signal" or after == 4
    if not whole:
        assert {path: path.read_text() for path in written.rglob("*") if path.is_file()} == before
    assert plan(written, "services: {two: {}}\n", NEW, prune=True).would_change == (not whole)
    assert not plan(written, "services: {three: {}}\n", prune=True).has_conflicts
    assert {path.name for path in written.iterdir()} <= {"lead.yml", "b.json", "deep", "more.txt", "gone"}
