"""A model's files beside the repository: whose they are, what is in their way, and what they cost."""

import os
import shutil

import pytest
from crashes import tree

import tritongen.repository.placing
from tests.unit.repository.test_kept_plans import ONNX, built, entry, render
from tritongen.errors import RepositoryError
from tritongen.recipe import RECIPES, PlanFile
from tritongen.repository import Action, apply_plan, bytes_to_copy, make_plan, recover


def refused(tmp_path, made, **options):
    with pytest.raises(RepositoryError) as caught:
        render(tmp_path, made, **options)
    (found,) = caught.value.diagnostics
    assert found.code == "TG043"
    return found


@pytest.mark.parametrize("name", [ONNX, RECIPES])
def test_a_hand_edit_beside_the_repository_is_a_conflict_and_force_takes_it_over(tmp_path, name):
    render(tmp_path, entry(tmp_path)[0])
    edited = tmp_path / "repo.artifacts/m" / name
    edited.write_bytes(edited.read_bytes() + b" ")
    before = edited.read_bytes()
    found = refused(tmp_path, entry(tmp_path, tf32=False)[0])
    assert f"{edited} was changed by hand" in found.message
    assert edited.read_bytes() == before
    render(tmp_path, entry(tmp_path)[0], force=True)
    assert edited.read_bytes() == before[:-1]


@pytest.mark.parametrize("name", [ONNX, RECIPES])
def test_somebodys_file_where_an_artifact_goes_is_a_conflict(tmp_path, name):
    there = tmp_path / "repo.artifacts/m" / name
    there.parent.mkdir(parents=True)
    there.write_bytes(b"mine")
    assert f"{there} was not made by tritongen" in refused(tmp_path, entry(tmp_path)[0]).message
    assert (there.read_bytes(), (tmp_path / "repo").exists()) == (b"mine", False)
    render(tmp_path, entry(tmp_path)[0], force=True)
    assert there.read_bytes() != b"mine"


def test_what_cannot_be_a_folder_or_a_file_there_is_a_conflict_also_with_force(tmp_path):
    (tmp_path / "repo.artifacts").write_text("mine")
    assert f"{tmp_path}/repo.artifacts is no folder" in refused(tmp_path, entry(tmp_path)[0], force=True).message
    (tmp_path / "repo.artifacts").unlink()
    (tmp_path / "repo.artifacts/m/model.onnx").mkdir(parents=True)
    assert "model.onnx is no file" in refused(tmp_path, entry(tmp_path)[0], force=True).message
    assert not (tmp_path / "repo").exists()


def test_a_repository_that_was_removed_is_rendered_again_over_its_own_artifacts(tmp_path):
    """`rm -r` of the repository leaves what lies beside it; the recipes there say what was ours."""
    render(tmp_path, entry(tmp_path)[0])
    shutil.rmtree(tmp_path / "repo")
    render(tmp_path, entry(tmp_path, onnx=b"other", tf32=False)[0])
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"other"
    shutil.rmtree(tmp_path / "repo")
    (tmp_path / "repo.artifacts/m/model.onnx").write_bytes(b"mine")
    assert "model.onnx was changed by hand" in refused(tmp_path, entry(tmp_path, onnx=b"third")[0]).message


def test_artifacts_of_a_model_whose_config_changes_are_not_copied_again(tmp_path):
    render(tmp_path, entry(tmp_path)[0])
    before = (tmp_path / "repo.artifacts/m/model.onnx").stat()
    later = make_plan(tmp_path / "repo", [entry(tmp_path, tf32=False)[0]])
    assert (later.changes[0].action, bytes_to_copy(later)) == (Action.REPLACE, 0)
    apply_plan(later)
    after = (tmp_path / "repo.artifacts/m/model.onnx").stat()
    assert (after.st_ino, after.st_nlink) == (before.st_ino, 1)


def test_what_a_killed_render_put_there_is_taken_back(tmp_path):
    """Its next render may be of another spec: what it placed for a model that it never swapped must not look like somebody's work."""
    render(tmp_path, entry(tmp_path)[0])
    killed_at_the_swap(tmp_path, entry(tmp_path, onnx=b"other")[0])
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"other"
    recover(tmp_path / "repo")
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"onnx"
    render(tmp_path, entry(tmp_path, onnx=b"third")[0])
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"third"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo", "repo.artifacts", "source.onnx"]


def test_of_a_model_that_was_new_nothing_is_left(tmp_path):
    """Also where no later spec asks for it: no stamp would ever know its files."""
    killed_at_the_swap(tmp_path, entry(tmp_path)[0])
    assert (tmp_path / "repo.artifacts/m/model.onnx").read_bytes() == b"onnx"
    recover(tmp_path / "repo")
    assert [path.name for path in tmp_path.iterdir() if path.name != "repo"] == ["source.onnx"]


def test_what_was_there_before_a_new_model_is_there_again(tmp_path):
    render(tmp_path, entry(tmp_path)[0])
    shutil.rmtree(tmp_path / "repo/m")
    before = tree(tmp_path / "repo.artifacts")
    killed_at_the_swap(tmp_path, entry(tmp_path, onnx=b"other")[0])
    assert tree(tmp_path / "repo.artifacts") != before
    recover(tmp_path / "repo")
    assert tree(tmp_path / "repo.artifacts") == before


def test_what_builders_made_for_a_plan_is_there_again(tmp_path):
    """A plan without its manifest is one of which nobody knows what it was built from."""
    plan = built(tmp_path)
    before = tree(tmp_path / "repo.artifacts")
    killed_at_the_swap(tmp_path, entry(tmp_path, plans=(PlanFile("other.plan"),))[0])
    assert tree(tmp_path / "repo.artifacts").keys() < before.keys()
    recover(tmp_path / "repo")
    assert (plan.read_bytes(), tree(tmp_path / "repo.artifacts")) == (b"a plan", before)


def killed_at_the_swap(tmp_path, made):
    """Renders in a child that ends where it would swap the model."""
    child = os.fork()
    if not child:
        tritongen.repository.placing._swap = lambda *_: os._exit(9)
        try:
            render(tmp_path, made)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
