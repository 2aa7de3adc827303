"""Plans that were built on the target, and the script that builds them: what a render keeps, and what it leaves out."""

import stat
from pathlib import PurePosixPath

import click
import pytest

from tritongen.errors import RepositoryError
from tritongen.manifest import Builder, make_manifest, manifest_path, print_manifest
from tritongen.recipe import RECIPES, PlanFile, PlanRecipe, print_recipes
from tritongen.report.plans import format_plan
from tritongen.repository import Action, CopiedFile, Entry, KeptFile, SharedFile, TextFile, apply_plan, file_sha256, make_plan
from tritongen.repository.stamp import stamp_text

CONFIG, ONNX, SCRIPT = PurePosixPath("config.pbtxt"), PurePosixPath("model.onnx"), PurePosixPath("build_plans.sh")
BUILDER = Builder("tensorrt", "10.13.2.6", compute_capability="8.6", release="25.08")


def entry(tmp_path, onnx=b"onnx", **options):
    """A model with a plan, as render makes it; `options` are the recipe's."""
    source = tmp_path / "source.onnx"
    source.write_bytes(onnx)
    sha = file_sha256(source)
    given = {"release": "25.08", "plans": (PlanFile("model.plan"),)} | options
    recipe = PlanRecipe("m", 1, onnx=ONNX, files={ONNX: sha}, **given)
    artifacts = {ONNX: CopiedFile(source, sha), RECIPES: TextFile(print_recipes([recipe]).encode())}
    files = {PurePosixPath("1", each.name): KeptFile(recipe, each) for each in recipe.plans}
    return Entry("m", {**files, CONFIG: TextFile(stamp_text("# header\n", "max_batch_size: 0\n", files, artifacts, {}).encode())}, artifacts), recipe


def render(tmp_path, made, **options):
    plan = make_plan(tmp_path / "repo", [made], **options)
    apply_plan(plan)
    return plan


def built(tmp_path):
    """A plan that was built after a first render, with its manifest."""
    made, recipe = entry(tmp_path)
    render(tmp_path, made)
    path = tmp_path / "repo/m/1/model.plan"
    path.write_bytes(b"a plan")
    manifest = tmp_path / "repo.artifacts/m" / manifest_path(1, "model.plan")
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text(print_manifest(make_manifest(recipe, file_sha256(path), BUILDER)))
    return path


@pytest.fixture
def plan(tmp_path):
    return built(tmp_path)


def test_a_plan_stays_as_long_as_its_manifest_says_that_it_is_good(tmp_path, plan):
    made, _ = entry(tmp_path)
    assert not render(tmp_path, made).would_change
    # 25.08 and this one have not the same name, and nothing else that matters differs.
    other, _ = entry(tmp_path, release="25.08", version_compatible=False)
    assert not render(tmp_path, other).would_change
    assert plan.read_bytes() == b"a plan"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"onnx": b"other"}, "it was built from another model.onnx"),
        ({"tf32": False}, "it was built with TF32 on, and off is asked for"),
        ({"release": "25.09"}, "it was built with TensorRT 10.13.2.6 (release 25.08), and release 25.09 has 10.13.3.9"),
        ({"release": "25.09", "tf32": False}, "it was built with TF32 on, and off is asked for; it was built with TensorRT 10.13.2.6"),
    ],
)
def test_a_stale_plan_is_left_out_and_said_with_the_difference(tmp_path, plan, change, why):
    made, _ = entry(tmp_path, **change)
    done = render(tmp_path, made)
    assert done.changes[0].action is Action.REPLACE
    assert f"1/model.plan: is stale, and left out until it is built again: {why}" in format_plan(done)
    assert not plan.exists()
    assert plan.parent.is_dir()
    assert not render(tmp_path, made).would_change


def test_what_builders_left_of_a_plan_goes_with_it(tmp_path, plan):
    beside = tmp_path / "repo.artifacts/m"
    left = ["timing.cache", "timing.sm86.cache", "1/model.plan.log", "1/model.rtx.plan", "1/model.rtx.plan.manifest.json"]
    others = ["notes.txt", "1/mine.bin", "2/model.rtx.plan"]
    for name in (*left, *others):
        (beside / name).parent.mkdir(exist_ok=True)
        (beside / name).write_text("left")
    made, _ = entry(tmp_path)
    assert not render(tmp_path, made).would_change
    assert all((beside / name).exists() for name in left)
    files = {PurePosixPath("1/model.onnx"): CopiedFile(tmp_path / "source.onnx", file_sha256(tmp_path / "source.onnx"))}
    served = Entry("m", {**files, CONFIG: TextFile(stamp_text("# header\n", "", files, {}, {}).encode())})
    done = render(tmp_path, served)
    assert "artifact 1/model.plan.manifest.json: no longer wanted" in format_plan(done)
    assert sorted(str(path.relative_to(beside)) for path in beside.rglob("*") if path.is_file()) == sorted(others)
    assert not render(tmp_path, served).would_change


def test_a_plan_for_another_kind_of_gpu_takes_only_its_own_manifest_along(tmp_path, plan):
    beside = tmp_path / "repo.artifacts/m"
    for name in ("timing.cache", "timing.sm86.cache", "1/model.rtx.plan"):
        (beside / name).write_text("left")
    made, _ = entry(tmp_path, plans=(PlanFile("model.sm86.plan", "8.6", "timing.sm86.cache"),))
    render(tmp_path, made)
    assert sorted(path.name for path in beside.rglob("*") if path.is_file()) == ["model.onnx", "model.rtx.plan", "recipes.json", "timing.sm86.cache"]


def test_pruning_a_model_removes_what_builders_left_of_its_plans(tmp_path, plan):
    plan.unlink()
    (tmp_path / "repo.artifacts/m/timing.cache").write_text("times")
    apply_plan(make_plan(tmp_path / "repo", [], prune=True))
    assert not (tmp_path / "repo/m").exists()
    assert not (tmp_path / "repo.artifacts").exists()


def test_a_plan_that_somebody_brought_stays_until_the_model_changes(tmp_path, plan):
    plan.write_bytes(b"another plan")
    tuned, _ = entry(tmp_path, tf32=False)
    render(tmp_path, tuned)
    assert plan.read_bytes() == b"another plan"
    other, _ = entry(tmp_path, onnx=b"other")
    assert "1/model.plan: nothing says what it was built from, and the model is another one" in format_plan(render(tmp_path, other))
    assert not plan.exists()


def test_a_damaged_manifest_says_nothing(tmp_path, plan):
    (tmp_path / "repo.artifacts/m" / manifest_path(1, "model.plan")).write_text("{")
    made, _ = entry(tmp_path, tf32=False)
    render(tmp_path, made)
    assert plan.exists()


def test_a_file_in_the_place_of_a_plan_that_no_render_knew_is_a_conflict(tmp_path):
    source = tmp_path / "m.onnx"
    source.write_bytes(b"onnx")
    files = {PurePosixPath("1/model.onnx"): CopiedFile(source, file_sha256(source))}
    render(tmp_path, Entry("m", {**files, CONFIG: TextFile(stamp_text("# header\n", "", files, {}, {}).encode())}))
    (tmp_path / "repo/m/1/model.plan").write_bytes(b"mine")
    made, _ = entry(tmp_path)
    with pytest.raises(RepositoryError, match="its place is needed"):
        render(tmp_path, made)
    render(tmp_path, made, force=True)
    assert not (tmp_path / "repo/m/1/model.plan").exists()


def script(body="echo\n"):
    return stamp_text("#!/bin/sh\n# header\n", body, {}, {}, {}).encode()


def test_a_folder_in_the_place_of_a_plan_with_somebodys_files_is_a_conflict(tmp_path):
    made, _ = entry(tmp_path)
    render(tmp_path, made)
    folder = tmp_path / "repo/m/1/model.plan"
    folder.mkdir()
    assert "1/model.plan: is a folder, and a file belongs there" in make_plan(tmp_path / "repo", [made]).changes[0].reasons
    (folder / "notes").write_text("mine")
    with pytest.raises(RepositoryError) as caught:
        render(tmp_path, made)
    assert f"{folder / 'notes'} was not made by tritongen, and its place is needed" in str(caught.value)
    assert (folder / "notes").read_text() == "mine"
    render(tmp_path, made, force=True)
    assert not folder.exists()


def wanted(content):
    return lambda recipes: {SCRIPT: SharedFile(content)}


def test_the_script_is_written_replaced_and_removed_with_the_models(tmp_path):
    made, _ = entry(tmp_path)
    path = tmp_path / "repo.artifacts/build_plans.sh"
    first = render(tmp_path, made, shared=wanted(script()))
    assert f"created   {path}" in click.unstyle(format_plan(first, done=True))
    assert path.read_bytes() == script()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert not render(tmp_path, made, shared=wanted(script())).would_change
    path.chmod(0o644)
    assert [change.action for change in render(tmp_path, made, shared=wanted(script())).shared] == [Action.REPLACE]
    later = make_plan(tmp_path / "repo", [made], shared=wanted(script("echo 2\n")))
    assert (later.would_change, later.has_conflicts) == (True, False)
    apply_plan(later)
    assert path.read_bytes() == script("echo 2\n")
    gone = render(tmp_path, made, shared=wanted(None))
    assert f"removed   {path}" in click.unstyle(format_plan(gone, done=True))
    assert f"remove    {path}" in click.unstyle(format_plan(gone))
    assert not path.exists()
    assert not render(tmp_path, made, shared=wanted(None)).would_change
    assert sorted(each.name for each in tmp_path.iterdir()) == ["repo", "repo.artifacts", "source.onnx"]


@pytest.mark.parametrize(("found", "why"), [(b"mine", "was not made by tritongen"), (script() + b"# mine\n", "was edited by hand")])
def test_a_script_with_somebodys_work_is_a_conflict_and_force_takes_it_over(tmp_path, found, why):
    made, _ = entry(tmp_path)
    path = tmp_path / "repo.artifacts/build_plans.sh"
    path.parent.mkdir()
    path.write_bytes(found)
    with pytest.raises(RepositoryError, match=why) as caught:
        render(tmp_path, made, shared=wanted(script()))
    assert "--force" in caught.value.diagnostics[0].hint
    assert not (tmp_path / "repo").exists()
    assert why in format_plan(make_plan(tmp_path / "repo", [made], shared=wanted(script())))
    for force in (False, True):
        render(tmp_path, made, shared=wanted(None), force=force)
        assert path.read_bytes() == found, "its place is not needed"
    render(tmp_path, made, shared=wanted(script()), force=True)
    assert path.read_bytes() == script()


def test_a_folder_in_the_place_of_the_script_is_never_taken_over(tmp_path):
    made, _ = entry(tmp_path)
    (tmp_path / "repo.artifacts/build_plans.sh").mkdir(parents=True)
    with pytest.raises(RepositoryError, match="is no file") as caught:
        render(tmp_path, made, shared=wanted(script()), force=True)
    assert caught.value.diagnostics[0].hint == "remove it, or move it away"
    render(tmp_path, made, shared=wanted(None))
