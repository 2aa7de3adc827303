"""What is said of several models at once: those that are right are compiled beside others that are not, and resources that they share."""

import networks
import pytest

from tritongen.diagnostics import Severity
from tritongen.errors import InputError, SpecError
from tritongen.workflow.rendering import draft_render, plan_render


def write(folder, text):
    networks.mlp(folder / "m.onnx")
    networks.mlp(folder / "fixed.onnx", batch=1)
    (folder / "spec.yaml").write_text(f"version: 1\n{text}")
    return folder / "spec.yaml"


def errors(spec):
    with pytest.raises(InputError) as caught:
        plan_render(spec)
    return [finding for finding in caught.value.diagnostics if finding.severity is Severity.ERROR]


MIXED = """\
triton: {release: "25.08"}
defaults: {batching: {max: 8}}
models:
  - {name: misspelt, source: m.onnx, bathcing: none}
  - {name: wrong, source: m.onnx, shapes: {z: [4]}}
  - {name: fine, source: m.onnx}
  - {name: absent, source: none.onnx}
  - {name: both, source: none.onnx, precision: fp15}
  - {name: fixed, source: fixed.onnx}
"""


def test_a_wrong_key_hides_nothing_of_other_models(tmp_path):
    spec = write(tmp_path, MIXED)
    found = errors(spec)
    assert [(finding.model, finding.code, finding.location.line) for finding in found] == [
        ("misspelt", "TG008", 5),
        ("both", "TG020", 9),
        ("both", "TG011", 9),
        ("wrong", "TG103", 6),
        ("absent", "TG020", 8),
    ]
    with draft_render(spec) as draft:
        assert {entry.name for entry in draft.entries} == {"wrong", "fine", "fixed"}
        assert {(finding.model, finding.code) for finding in draft.findings if finding.severity is Severity.ADVICE} == {("fixed", "TG106")}


def test_each_finding_is_said_once(tmp_path):
    found = errors(write(tmp_path, MIXED))
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "text",
    [
        "triton: {release: 25.08}\nmodels: [{name: a, source: m.onnx, shapes: {z: [4]}}]\n",
        "default: {}\nmodels: [{name: a, source: m.onnx, shapes: {z: [4]}}]\n",
        "defaults: {precision: fp15}\nmodels: [{name: a, source: m.onnx, shapes: {z: [4]}}]\n",
        "models: [{name: a, source: m.onnx, precision: fp15}]\n",
    ],
)
def test_what_concerns_all_models_is_said_alone(tmp_path, text):
    spec = write(tmp_path, text)
    with pytest.raises(SpecError):
        draft_render(spec)
    assert len(errors(spec)) == 1


def test_a_model_that_does_not_inherit_what_is_wrong_is_judged(tmp_path):
    models = "[{name: a, source: m.onnx}, {name: b, source: m.onnx, precision: fp32, shapes: {z: [4]}}]"
    found = errors(write(tmp_path, f"defaults: {{precision: fp15}}\nmodels: {models}\n"))
    assert [(finding.model, finding.code) for finding in found] == [("", "TG011"), ("b", "TG103")]


def test_a_folder_for_engines_without_any_is_said(tmp_path):
    spec = write(tmp_path, "triton: {engine_cache: /cache}\nmodels: [{name: a, source: m.onnx}]\n")
    (found,) = [finding for finding in plan_render(spec).findings if finding.code == "TG117"]
    assert (found.location.line, found.severity) == (2, Severity.WARNING)


GROUPS = "instances: {{kind: cpu, rate_limiter: {{resources: [{}]}}}}"


@pytest.mark.parametrize(
    ("models", "model", "words"),
    [
        (["{name: R}, {name: R, global: true}"], "m0", "is global here and per device at"),
        (["{name: R, global: true}, {name: S}", "{name: S}, {name: R}"], "m1", "is per device here and global at"),
    ],
)
def test_a_resource_of_two_kinds_is_refused_with_both_places(tmp_path, models, model, words):
    lines = "".join(f"  - {{name: m{index}, source: m.onnx, {GROUPS.format(resources)}}}\n" for index, resources in enumerate(models))
    (found,) = errors(write(tmp_path, f"triton: {{release: '25.08', cpus: 4}}\nmodels:\n{lines}"))
    assert (found.code, found.model) == ("TG176", model)
    assert words in found.message
    assert "spec.yaml:4" in found.message
    assert ("of model 'm0'" in found.message) == (model == "m1")


def test_an_overlay_is_one_of_the_places(tmp_path):
    overlay = "config: {instance_group: [{kind: KIND_CPU, count: 1, rate_limiter: {resources: [{name: R, count: 1, global: true}]}}]}"
    lines = f"  - {{name: a, source: m.onnx, {GROUPS.format('{name: R}')}}}\n  - {{name: b, source: m.onnx, {overlay}}}\n"
    (found,) = errors(write(tmp_path, f"models:\n{lines}"))
    assert (found.code, found.model) == ("TG176", "b")
