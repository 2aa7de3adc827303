"""What `check` says of plans that were built: their making lies beside the repository, in files that anybody may have changed."""

import dataclasses
import os
from pathlib import Path

import pytest

from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import find_targets
from tritongen.manifest import Builder, make_manifest, manifest_path, print_manifest
from tritongen.recipe import RECIPES, PlanFile, PlanRecipe, Profile, Span, print_recipes
from tritongen.releases import find_release
from tritongen.repository import file_sha256
from tritongen.rules import ServerFacts
from tritongen.workflow.serving import stale_plans

CONFIG = """platform: "tensorrt_plan"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 64 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 16 ] }
instance_group { kind: KIND_GPU }
"""
HEADER = b"ftrt" + bytes(20) + bytes((10, 3, 0, 26)) + b"rest"
PROFILE = Profile({"x": Span((1, 64), (8, 64), (8, 64))})
RECIPE = PlanRecipe("m", 1, (PlanFile("model.plan"),), Path("model.onnx"), {Path("model.onnx"): "ab" * 32}, (PROFILE,), release="25.08")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models/m/1").mkdir(parents=True)
    (tmp_path / "models/m/config.pbtxt").write_text(CONFIG)
    plan = tmp_path / "models/m/1/model.plan"
    plan.write_bytes(HEADER)
    artifacts = tmp_path / "models.artifacts/m"
    (artifacts / "1").mkdir(parents=True)
    (artifacts / RECIPES).write_text(print_recipes([RECIPE]))
    manifest = make_manifest(RECIPE, file_sha256(plan), Builder("tensorrt", "10.3.0.26", release="24.08"))
    (artifacts / manifest_path(1, "model.plan")).write_text(print_manifest(manifest))
    return tmp_path / "models"


def found(path, release=None):
    options = CheckOptions(ServerFacts(find_release(release) if release else None))
    return [finding.diagnostic for finding in check(find_targets([Path(path)]), options) if finding.diagnostic.code in ("TG358", "TG359")]


def test_the_difference_is_said_with_what_to_do(repository):
    (finding,) = found("models")
    assert finding.message == "1/model.plan was built with TensorRT 10.3.0.26 (release 24.08), and release 25.08 has 10.13.2.6"
    assert finding.hint == "build it in the container that serves it: sh models.artifacts/build_plans.sh"
    assert finding.consequence == "Triton refuses to load the model"
    assert str(finding.location) == "models/m/1/model.plan"
    assert found("models", "24.08") == []


def test_a_models_folder_alone_and_the_current_folder_are_judged_alike(repository, monkeypatch):
    assert [each.code for each in found("models/m")] == ["TG358"]
    monkeypatch.chdir(repository)
    (finding,) = found(".")
    assert "build_plans.sh in the folder that is named after the repository" in finding.hint


def test_for_another_release_the_spec_comes_first(repository):
    (finding,) = found("models", "25.11")
    assert finding.hint == (
        'write triton: {release: "25.11"} in the spec and render it; then build it in the container that serves it: sh models.artifacts/build_plans.sh'
    )
    repository.with_name("models.artifacts").rename(repository.with_name("gone"))
    (finding,) = found("models", "25.11")
    assert finding.hint == "build it again in the container of release 25.11"


@pytest.mark.parametrize(("hardware", "said"), [("none", ["8.9"]), ("ampere_plus", [])])
def test_a_plan_that_the_config_names_for_gpus_of_others_is_refused_where_it_is_named(repository, hardware, said):
    recipe = dataclasses.replace(RECIPE, plans=(PlanFile("model.plan", "8.6"),), hardware_compatibility=hardware)
    manifest = make_manifest(recipe, file_sha256(repository / "m/1/model.plan"), Builder("tensorrt", "10.3.0.26", release="24.08", compute_capability="8.6"))
    artifacts = repository.with_name("models.artifacts") / "m"
    (artifacts / RECIPES).write_text(print_recipes([recipe]))
    (artifacts / manifest_path(1, "model.plan")).write_text(print_manifest(manifest))
    names = "".join(f'cc_model_filenames {{ key: "{capability}" value: "model.plan" }}\n' for capability in ("8.6", "8.9"))
    (repository / "m/config.pbtxt").write_text(f'default_model_filename: "model.plan"\n{CONFIG}{names}')
    findings = found("models", "24.08")
    assert [each.message for each in findings] == [f"GPUs of compute capability {each} would load 1/model.plan, which was built on one of 8.6" for each in said]
    assert [(each.code, each.severity.value, each.location.line) for each in findings] == [("TG359", "error", 8)] * len(said)


def test_the_trtllm_image_of_the_same_release_is_another(repository):
    plan = repository / "m/1/model.plan"
    plan.write_bytes(b"ftrt" + bytes(20) + bytes((10, 11, 0, 33)) + b"rest")
    manifest = make_manifest(RECIPE, file_sha256(plan), Builder("tensorrt", "10.11.0.33", release="25.08"))
    (repository.with_name("models.artifacts") / "m" / manifest_path(1, "model.plan")).write_text(print_manifest(manifest))
    (finding,) = found("models")
    assert finding.code == "TG358"
    assert finding.message == (
        "1/model.plan was built with TensorRT 10.11.0.33 (the -trtllm image of release 25.08), and the -py3 image of release 25.08 has 10.13.2.6"
    )
    assert finding.severity.value == "error"


def test_a_manifest_of_another_library_than_the_file_is_of_is_said(repository):
    plan = repository / "m/1/model.plan"
    manifest = make_manifest(RECIPE, file_sha256(plan), Builder("tensorrt-rtx", "1.7.1.116"))
    (repository.with_name("models.artifacts") / "m" / manifest_path(1, "model.plan")).write_text(print_manifest(manifest))
    messages = {each.message: each.consequence for each in found("models")}
    assert messages["1/model.plan was built by tensorrt-rtx, and tensorrt loads no such plan"] == "Triton refuses to load the model"
    assert "1/model.plan is a plan of tensorrt 10.3.0.26 by its first bytes, and its manifest says tensorrt-rtx 1.7.1.116: the manifest was edited" in messages


def test_a_manifest_of_another_version_than_the_file_is_of_is_said(repository):
    manifest = make_manifest(RECIPE, file_sha256(repository / "m/1/model.plan"), Builder("tensorrt", "10.13.2.6", release="25.08"))
    (repository.with_name("models.artifacts") / "m" / manifest_path(1, "model.plan")).write_text(print_manifest(manifest))
    assert "by its first bytes, and its manifest says tensorrt 10.13.2.6" in {each.code: each.message for each in found("models")}["TG359"]


def test_serve_says_it_of_the_plan_that_another_server_will_load(repository):
    (warning,) = stale_plans(repository, None)
    assert (warning.code, warning.severity.value) == ("TG358", "warning")
    assert warning.consequence == "its source ONNX is served here; with the plan, Triton refuses to load the model"
    assert stale_plans(repository, "24.08") == ()
    (repository / "broken").mkdir()
    (repository / "broken/config.pbtxt").write_text("nmae: 3")
    assert stale_plans(repository, "24.08") == ()
    assert stale_plans(repository / "not-there", None) == ()


def test_of_a_plan_that_nothing_is_known_of_only_its_header_counts(repository):
    repository.with_name("models.artifacts").rename(repository.with_name("gone"))
    assert found("models") == []
    (finding,) = found("models", "25.08")
    assert finding.severity.value == "warning"
    assert "unless it was built for later versions, too" in finding.consequence


@pytest.mark.parametrize("name", [RECIPES, manifest_path(1, "model.plan")])
@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe", b"3", b'{"format": 9, "fingerprint": 1, "recipes": []}'])
def test_files_that_are_none_are_said_and_no_traceback(repository, name, content):
    (repository.with_name("models.artifacts") / "m" / name).write_bytes(content)
    (finding,) = [each for each in found("models") if each.code == "TG359"]
    assert "may be stale" in finding.message
    assert "cannot be used" in finding.message
    assert finding.severity.value == "advice"


@pytest.mark.parametrize("name", [RECIPES, manifest_path(1, "model.plan")])
def test_a_pipe_in_their_place_is_not_waited_for(repository, name):
    path = repository.with_name("models.artifacts") / "m" / name
    path.unlink()
    os.mkfifo(path)
    found("models")


def test_a_file_that_nobody_wrote_is_not_read(repository):
    path = repository.with_name("models.artifacts") / "m" / manifest_path(1, "model.plan")
    os.truncate(path, 1 << 30)
    (finding,) = [each for each in found("models") if each.code == "TG359"]
    assert "was not read" in finding.message


def test_every_plan_that_the_config_can_load_is_looked_at_in_every_version(repository):
    config = CONFIG + 'version_policy { all { } }\ncc_model_filenames { key: "8.6" value: "a.plan" }\ncc_model_filenames { key: "9.0" value: "./b.plan" }\n'
    (repository / "m/config.pbtxt").write_text(config)
    (repository / "m/2").mkdir()
    for path in ("1/a.plan", "1/b.plan", "2/model.plan"):
        (repository / "m" / path).write_bytes(HEADER)
    (repository / "m/2/a.plan").write_bytes(b"\x08\x08\x12\x07pytorch" + bytes(50))
    (repository / "m/2/b.plan").write_bytes(b"")
    findings = [each.diagnostic for each in check(find_targets([repository]), CheckOptions(ServerFacts(find_release("24.10"))))]
    said = {(each.code, Path(each.location.path).relative_to(repository / "m").as_posix()) for each in findings}
    files = [f"{version}/{name}.plan" for version in (1, 2) for name in ("model", "a", "b")]
    assert {path for code, path in said if code == "TG350"} == {"2/a.plan", "2/b.plan"}
    assert {path for code, path in said if code == "TG358"} == {*files} - {"2/a.plan", "2/b.plan"}
    assert {path for code, path in said if code == "TG359"} == {*files} - {"1/model.plan"}
    assert "2/a.plan is an ONNX model, not a TensorRT plan" in {each.message for each in findings}
    assert {each.hint for each in findings if each.code == "TG359"} == {"render the spec again, so that its recipes and the config name the same plans"}
