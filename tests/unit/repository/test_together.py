"""Two renders of one repository at once, what a killed one leaves, and whose things are never touched."""

import errno
import fcntl
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import networks
import pytest
from crashes import by_model, tree

from tritongen.errors import RepositoryError
from tritongen.repository import CopiedFile, apply_plan, config_sha256, make_plan, recover
from tritongen.repository.private import find_leftovers, make_private
from tritongen.repository.system import Hold
from tritongen.workflow.rendering import plan_render

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from tritongen.cli.main import run
import tritongen.workflow.rendering
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    for _ in range(99):  # "run it again" (TG049), says a model whose versions are counted
        code = run(["render", sys.argv[1], "-o", sys.argv[2], "--prune"])
        if code != 2:
            break
    if code:
        sys.exit(code)
"""


def write(folder, *, name="spec", most=4, source="m.onnx", version="1"):
    path = folder / f"{name}.yaml"
    models = "".join(
        f"  - {{name: {model}, source: {source}, batching: {{max: {most}}}, version: {version}, versions: {{count: 2}}}}\n" for model in ("a", "b", "c")
    )
    path.write_text(f"version: 1\ndefaults: {{prove: false}}\nmodels:\n{models}")
    return path


def write_more(folder, **options):
    """The same with a model that has a plan, and with it a script, one that only this spec has, and one whose versions are counted."""
    path = write(folder, **options)
    plan = f"  - {{name: plan, source: m.onnx, backend: tensorrt, instances: [{{kind: gpu}}], batching: {{max: {options.get('most', 4)}}}}}\n"
    counted = "  - {name: counted, source: m.onnx, version: auto}\n"
    path.write_text(f"{path.read_text()}{plan}{counted}  - {{name: only_{path.stem}, source: m.onnx}}\n")
    return path


def together(folder, specs, rounds):
    """Exit codes and messages of two processes that render into one repository at the same time, so many times."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(spec), str(folder / "repo"), str(rounds)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for spec in specs
    ]
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [(process.communicate(timeout=60 * (rounds + 1))[1], process.returncode) for process in started]


def rendered_alone(folder, spec):
    with plan_render(spec, output=folder / f"alone-{spec.stem}") as rendering:
        apply_plan(rendering.plan)
    return everything(folder / f"alone-{spec.stem}")


def everything(root):
    """The files of each model, and those beside the repository."""
    return by_model(root), tree(root.with_name(f"{root.name}.artifacts"))


def race(folder, rounds):
    networks.mlp(folder / "m.onnx", seed=1)
    networks.mlp(folder / "n.onnx", seed=2)
    specs = [write_more(folder, name="one"), write_more(folder, name="two", most=8, source="n.onnx")]
    alone = [rendered_alone(folder, spec) for spec in specs]
    beside = {path.name for path in folder.iterdir()} | {"repo", "repo.artifacts"}
    for said, code in together(folder, specs, rounds):
        assert code == 0, said
        assert {*re.findall(r"TG\d+", said)} <= {"TG049"}, said
    assert everything(folder / "repo") in alone, "the repository is that of one of them, whole: they take turns"
    assert {path.name for path in folder.iterdir()} == beside


def test_two_renders_at_once_take_turns(memory):
    race(memory, 2)


@pytest.mark.soak
def test_fifty_times_two_renders_at_once(memory):
    race(memory, 50)


def test_a_render_that_waits_too_long_says_so(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "repo").mkdir()
    with plan_render(write(tmp_path), output=tmp_path / "repo") as rendering:
        holder = os.open(tmp_path / "repo", os.O_RDONLY)
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(RepositoryError, match="another process has held the model repository") as error:
            apply_plan(rendering.plan, wait_s=0.2)
        assert [finding.code for finding in error.value.diagnostics] == ["TG048"]
        os.close(holder)
        assert len(apply_plan(rendering.plan, wait_s=0.2).written) == 3


def test_nobody_looks_while_another_render_writes(tmp_path, monkeypatch):
    """Half of a folder from before a swap and half from after it looks like somebody's edit. Two that only look do not wait for each other."""
    networks.mlp(tmp_path / "m.onnx")
    with plan_render(write(tmp_path), output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    monkeypatch.setattr("tritongen.repository.planning.LOCK_WAIT_S", 0.2)
    holder = os.open(tmp_path / "repo", os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_SH)
    assert not make_plan(tmp_path / "repo", rendering.entries).would_change
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(RepositoryError, match="another process has held the model repository"):
        make_plan(tmp_path / "repo", rendering.entries)
    os.close(holder)
    assert not make_plan(tmp_path / "repo", rendering.entries).would_change


def test_what_versions_are_counted_from_is_read_between_two_renders(tmp_path, monkeypatch):
    """The stamp from before a swap and the folders from after it would give one number to two versions."""
    networks.mlp(tmp_path / "m.onnx")
    spec = write(tmp_path, version="auto")
    with plan_render(spec, output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    monkeypatch.setattr("tritongen.workflow.shelf.LOCK_WAIT_S", 0.2)
    holder = os.open(tmp_path / "repo", os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(RepositoryError) as error:
        plan_render(spec, output=tmp_path / "repo")
    assert [finding.code for finding in error.value.diagnostics] == ["TG048"], "once, and not for each model"
    os.close(holder)


def vanished(path):
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))


def test_a_version_that_another_render_replaces_as_it_is_read_is_no_error(tmp_path, monkeypatch):
    """That render has given the next number: what was counted here is found out of date when it is written (TG049)."""
    for seed, name in enumerate("mn"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)
    with plan_render(write(tmp_path, version="auto"), output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    monkeypatch.setattr("tritongen.workflow.shelf.file_sha256", vanished)
    with plan_render(write(tmp_path, source="n.onnx", version="auto"), output=tmp_path / "repo") as rendering:
        assert {str(path.parent) for path in rendering.entries[0].files} == {".", "2"}


def test_what_another_render_removes_as_it_is_looked_at_is_no_leftover(tmp_path, monkeypatch):
    """Workspaces come and go without the repository's lock, and so does the folder of artifacts where the last plan goes."""
    networks.mlp(tmp_path / "m.onnx")
    just_gone = tmp_path / ".repo.tritongen-0123456789abcdef"
    monkeypatch.setattr("tritongen.repository.staging.find_leftovers", lambda *_, **__: [just_gone])
    with plan_render(write(tmp_path), output=tmp_path / "repo", settle=True) as rendering:
        apply_plan(rendering.plan)
    assert find_leftovers(tmp_path / "repo.artifacts", tmp_path / "repo") == []


def test_a_folder_that_another_render_takes_for_a_leftover_is_made_again_and_not_left(tmp_path, monkeypatch):
    """Between its making and its lock it looks like one of a killed render."""
    answers = [Hold.BUSY, Hold.HELD]
    monkeypatch.setattr("tritongen.repository.private.try_lock", lambda _: answers.pop(0))
    private = make_private(tmp_path, tmp_path / "repo")
    assert [*tmp_path.iterdir()] == [private.path]
    private.remove()


def test_what_another_render_did_in_between_is_seen(tmp_path):
    """Two renders of one spec: the second finds its work done, and reports what it found."""
    networks.mlp(tmp_path / "m.onnx")
    with plan_render(write(tmp_path), output=tmp_path / "repo") as first, plan_render(write(tmp_path), output=tmp_path / "repo") as second:
        assert len(apply_plan(first.plan).written) == 3
        assert apply_plan(second.plan).written == ()


def test_a_hand_edit_in_between_is_not_overwritten(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    with plan_render(write(tmp_path), output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    with plan_render(write(tmp_path, most=8), output=tmp_path / "repo") as rendering:
        config = tmp_path / "repo/b/config.pbtxt"
        config.write_text(config.read_text() + "# mine\n")
        with pytest.raises(RepositoryError, match="edited by hand"):
            apply_plan(rendering.plan)
    assert config.read_text().endswith("# mine\n")
    assert "max_batch_size: 4" in (tmp_path / "repo/a/config.pbtxt").read_text()


def test_a_version_that_another_render_took_in_between_is_not_overwritten(tmp_path):
    for seed, name in enumerate("mno"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)

    def planned(source):
        return plan_render(write(tmp_path, source=source, version="auto"), output=tmp_path / "repo")

    with planned("m.onnx") as rendering:
        apply_plan(rendering.plan)
    with planned("n.onnx") as first, planned("o.onnx") as second:
        apply_plan(first.plan)
        with pytest.raises(RepositoryError, match="another render wrote the model") as error:
            apply_plan(second.plan)
    assert {finding.code for finding in error.value.diagnostics} == {"TG049"}
    assert (tmp_path / "repo/a/2/model.onnx").read_bytes() == (tmp_path / "n.onnx").read_bytes()
    with planned("o.onnx") as again:
        apply_plan(again.plan)
    assert sorted(path.name for path in (tmp_path / "repo/a").iterdir() if path.is_dir()) == ["2", "3"]


def test_a_source_that_changes_while_it_is_rendered_is_not_written(tmp_path):
    networks.mlp(tmp_path / "m.onnx", seed=1)
    with plan_render(write(tmp_path), output=tmp_path / "repo") as rendering:
        networks.mlp(tmp_path / "m.onnx", seed=2)
        with pytest.raises(RepositoryError, match="changed while it was rendered"):
            apply_plan(rendering.plan)
        (tmp_path / "m.onnx").unlink()
        with pytest.raises(RepositoryError, match="changed while it was rendered"):
            apply_plan(rendering.plan)
    assert not (tmp_path / "repo").exists(), "a folder that was made for nothing goes again"


def test_leftovers_of_the_dead_go_and_what_belongs_to_others_stays(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    for name in ("repo", ".repo.tritongen-mine", ".repo.tritongen-0123456789abcdef", ".other.tritongen-0123456789abcdee", ".repo.tritongen-0123456789abcdea"):
        (tmp_path / name).mkdir()
    (tmp_path / ".repo.tritongen-0123456789abcdef/owner").write_text("")
    (tmp_path / ".repo.tritongen-0123456789abcdef/new").mkdir()
    (tmp_path / ".repo.tritongen-0123456789abcdea/somebody's").write_text("")
    (tmp_path / ".repo.tritongen-0123456789abcdeb").symlink_to(tmp_path / "repo")
    living = make_private(tmp_path, tmp_path / "repo")
    with plan_render(write(tmp_path), output=tmp_path / "repo", settle=True) as rendering:
        apply_plan(rendering.plan)
    left = {path.name for path in tmp_path.iterdir()} - {"m.onnx", "repo", "spec.yaml"}
    kept = {".repo.tritongen-mine", ".other.tritongen-0123456789abcdee", ".repo.tritongen-0123456789abcdea", ".repo.tritongen-0123456789abcdeb"}
    assert left == {*kept, living.path.name}
    living.remove()
    assert not living.path.exists()


def test_a_private_folder_that_was_not_wholly_removed_is_still_known(tmp_path):
    private = make_private(tmp_path, tmp_path / "repo")
    (private.path / "a file of another kind").write_text("")
    private.remove()
    assert find_leftovers(tmp_path, tmp_path / "repo") == [private.path]


def test_a_model_that_a_killed_render_had_moved_away_is_put_back(tmp_path):
    """Where folders cannot be exchanged a model is absent for a moment; whoever comes next must find it."""
    networks.mlp(tmp_path / "m.onnx")
    with plan_render(write(tmp_path), output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    before = by_model(tmp_path / "repo")
    dead = tmp_path / ".repo.tritongen-0123456789abcdef"
    (dead / "old").mkdir(parents=True)
    (dead / "owner").write_text("")
    (tmp_path / "repo/a").rename(dead / "old/a")
    recover(tmp_path / "repo")
    assert by_model(tmp_path / "repo") == before
    assert not dead.exists()


def test_an_entry_that_depends_on_nothing_takes_what_is_there(tmp_path):
    """`basis` is for versions that are counted; any other model may be written over what another render wrote."""
    networks.mlp(tmp_path / "m.onnx", seed=1)
    with plan_render(write(tmp_path), output=tmp_path / "repo") as first, plan_render(write(tmp_path, most=8), output=tmp_path / "repo") as second:
        apply_plan(first.plan)
        before = config_sha256(tmp_path / "repo/a")
        assert len(apply_plan(second.plan).written) == 3
    assert config_sha256(tmp_path / "repo/a") != before
    assert config_sha256(tmp_path / "repo/nothing") == ""
    assert all(isinstance(file, CopiedFile) for path, file in second.entries[0].files.items() if path.name == "model.onnx")
    assert not make_plan(tmp_path / "repo", second.entries).would_change


@pytest.mark.parametrize("place", ["", "top"])
def test_what_a_killed_render_left_far_above_a_new_repository_is_found(tmp_path, monkeypatch, place):
    """The workspace lies in the nearest folder that is there and may be written to; when the next render comes, a nearer one may be there."""
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    root, other = tmp_path / "top/x/y/repo", tmp_path / "top/repo"
    for where in (tmp_path, tmp_path / "temporary"):
        for repository in (root, other):
            killed(make_private(where, repository))
    if place:
        root.parent.mkdir(parents=True)
    with plan_render(write(tmp_path), output=root, settle=True) as rendering:
        apply_plan(rendering.plan)
    assert sorted(path.name for path in root.parent.iterdir()) == ["repo"]
    left = [path.read_text() for folder in (tmp_path, tmp_path / "temporary") for path in folder.glob(".repo.tritongen-*/owner")]
    assert left == [str(other)] * 2, "those of another repository of that name are left to its own next render"


def killed(private):
    """What is left of a folder whose process is gone."""
    os.close(private.descriptor)
