"""The script that builds plans, when not all models are written: it has a part for each plan that the repository will have."""

import hashlib
import shutil

import networks
import pytest

MODEL = "name: {}, source: {}, backend: tensorrt, instances: [{{kind: gpu}}]"


@pytest.fixture
def site(tmp_path, tritongen):
    networks.mlp(tmp_path / "m.onnx", seed=1)
    networks.mlp(tmp_path / "n.onnx", seed=2)
    write(tmp_path, ("a", "m.onnx"), ("b", "m.onnx"))
    assert tritongen("render", tmp_path / "spec.yaml").code == 0
    return tmp_path


def write(folder, *models, release="25.08"):
    text = "".join(f"  - {{{MODEL.format(name, source)}}}\n" for name, source in models)
    (folder / "spec.yaml").write_text(f'version: 1\ntriton: {{release: "{release}"}}\ndefaults: {{prove: false}}\nmodels:\n{text}')


def script(site):
    return (site / "model_repository.artifacts/build_plans.sh").read_text()


def has_part(site, name):
    return f"begin 'model {name}, version 1'" in script(site)


def builds(site, name, source):
    """Whether the script builds a model from that source: it holds its hash."""
    return has_part(site, name) and hashlib.sha256((site / source).read_bytes()).hexdigest() in script(site)


def test_what_nothing_builds_before_tensorrt_10_is_refused_each_with_its_own_way_out(site, tritongen):
    asked = "batching: {max: 8}, tensorrt: {profiles: [{batch: 4}, {batch: 8}], build: {strip_weights: true}}"
    (site / "spec.yaml").write_text(f'version: 1\ntriton: {{release: "24.02"}}\nmodels:\n  - {{{MODEL.format("a", "m.onnx")}, {asked}}}\n')
    said = tritongen("render", site / "spec.yaml")
    assert said.code == 2
    assert "error TG184 (model a): trtexec of release 24.02 cannot build a plan with several profiles" in said.err
    assert "error TG184 (model a): trtexec of release 24.02 cannot leave the weights out of a plan" in said.err
    assert "keep one profile that covers all sizes, or use release 24.05 or newer" in said.err
    assert "remove strip_weights, or use release 24.05 or newer" in said.err
    assert "on the GPU that serves it with `tritongen build`" not in said.err


def test_keep_going_writes_the_parts_of_good_models_and_keeps_those_of_refused_ones(site, tritongen):
    write(site, ("a", "n.onnx"), ("b", "nowhere.onnx"))
    assert tritongen("render", site / "spec.yaml", "--keep-going").code == 2
    assert builds(site, "a", "n.onnx")
    assert builds(site, "b", "m.onnx")
    kept = script(site)
    assert tritongen("render", site / "spec.yaml", "--keep-going").code == 2
    assert script(site) == kept


def test_a_model_in_conflict_keeps_its_part(site, tritongen):
    config = site / "model_repository/b/config.pbtxt"
    config.write_text(config.read_text() + "# mine\n")
    write(site, ("a", "m.onnx"), ("b", "n.onnx"))
    assert tritongen("render", site / "spec.yaml", "--keep-going").code == 2
    assert builds(site, "b", "m.onnx")
    assert not builds(site, "b", "n.onnx")


def test_an_orphan_keeps_its_part_until_it_is_pruned(site, tritongen):
    write(site, ("a", "m.onnx"))
    assert tritongen("render", site / "spec.yaml").code == 0
    assert has_part(site, "b")
    assert tritongen("render", site / "spec.yaml", "--prune").code == 0
    assert not has_part(site, "b")


def test_an_orphan_without_readable_recipes_or_of_another_release_has_no_part_and_that_is_said(site, tritongen):
    write(site, ("a", "m.onnx"), release="24.10")
    said = tritongen("render", site / "spec.yaml")
    assert said.code == 0
    assert "no part for b, which stays as it is: release 25.08 loads its plans, and this is for 24.10" in said.out
    assert not has_part(site, "b")
    (site / "model_repository.artifacts/b/recipes.json").write_text("{")
    write(site, ("a", "n.onnx"), release="24.10")
    said = tritongen("render", site / "spec.yaml")
    assert said.code == 0
    assert "no part for b, which stays as it is" in said.out
    assert "recipes.json cannot be used" in said.out


def test_a_copy_of_a_model_is_somebodys_and_has_no_part(site, tritongen):
    """`cp -r b b.bak` before an experiment: that folder is not ours to remove."""
    for folder in ("model_repository", "model_repository.artifacts"):
        shutil.copytree(site / folder / "b", site / folder / "b.bak")
    assert tritongen("render", site / "spec.yaml", "--prune", "--force").code == 0
    assert (site / "model_repository/b.bak/config.pbtxt").is_file()
    assert not has_part(site, "b.bak")
    write(site, ("a", "m.onnx"), ("b", "m.onnx"), ("b.bak", "m.onnx"))
    refused = tritongen("render", site / "spec.yaml")
    assert refused.code == 2
    assert "is a copy of the model 'b'" in refused.err
