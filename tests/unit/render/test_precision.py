"""`precision`, deep learning accelerators and profiles of what TensorRT runs, by release."""

from __future__ import annotations

import pytest

from tests.unit.render.compiling import compiled
from tritongen import dtypes
from tritongen.diagnostics import Location, Severity
from tritongen.render import Findings
from tritongen.render.precision import judge_agreement
from tritongen.rewrite import Agreement, Comparison
from tritongen.signature import Signature, TensorSpec
from tritongen.spec import ModelSpec

INT64 = dtypes.from_wire("INT64")


def at(release: str) -> str:
    return f'triton: {{release: "{release}"}}'


PLAN, ACCELERATOR = "backend: tensorrt", "accelerator: tensorrt"


@pytest.mark.parametrize(
    ("keys", "release", "codes"),
    [
        (f"{PLAN}\nprecision: fp16", "25.08", []),
        (f"{PLAN}\nprecision: fp16", "26.05", []),
        (f"{PLAN}\nprecision: fp16", "26.06", []),
        (f"{PLAN}\nprecision: bf16", "26.08", ["TG112"]),
        (f"{PLAN}\nprecision: int8", "26.08", ["TG112"]),
        (f"{PLAN}\nprecision: int8", "26.10", ["TG112"]),
        (f"{PLAN}\nprecision: bf16", "24.04", ["TG110"]),
        (f"{PLAN}\nprecision: bf16", "24.05", []),
        (f"{PLAN}\nprecision: int8", "25.08", ["TG111"]),
        (f"{ACCELERATOR}\nprecision: bf16", "26.01", ["TG110"]),
        (f"{ACCELERATOR}\nprecision: bf16", "26.02", []),
        (f"{ACCELERATOR}\nprecision: int8", "25.08", ["TG111"]),
        (f"{ACCELERATOR}\nprecision: int8\nonnxruntime: {{tensorrt: {{int8_calibration_table_name: t.table}}}}", "25.08", []),
        (f"{ACCELERATOR}\nprecision: fp16", "26.09", []),
        (f"{ACCELERATOR}\nprecision: bf16", "26.09", ["TG112"]),
        (f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{tactic_sources: {{cudnn: false}}}}}}", "26.09", ["TG117"]),
        (f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{tactic_sources: {{cudnn: false}}}}}}", "26.05", []),
        (f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{build_heuristics: true}}}}", "25.07", ["TG117"]),
        (f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{build_heuristics: true}}}}", "26.01", ["TG117"]),
        (f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{build_heuristics: true}}}}", "24.04", []),
    ],
)
def test_what_a_release_can_do_with_it(keys, release, codes):
    assert compiled(keys, top=at(release)).codes == codes


def test_a_version_that_is_not_known_exactly_is_said_so():
    found = compiled(f"{PLAN}\nprecision: bf16", top=at("26.09")).only("TG112")
    assert "release 26.09 has TensorRT 11.2.1 or newer" in found.message
    assert found.hint == "convert the ONNX file to bf16 and write precision: fp32, or use a release up to 26.05"


@pytest.mark.parametrize(
    ("precision", "release", "mode"),
    [
        ("fp32", "25.08", "FP32"),
        ("tf32", "25.08", "FP32"),
        ("fp16", "25.08", "FP16"),
        ("int8", "26.05", "INT8"),
        *((precision, "26.08", None) for precision in ("fp32", "tf32", "fp16", "bf16", "int8")),
        ("fp16", "23.10", "FP16"),
        ("bf16", "31.01", None),
    ],
)
def test_the_accelerator_is_told_of_a_precision_where_its_tensorrt_heeds_one(precision, release, mode):
    outcome = compiled(f"{ACCELERATOR}\nprecision: {precision}", top=at(release))
    (accelerator,) = outcome.config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.parameters.get("precision_mode") == mode


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_plan_for_a_deep_learning_accelerator_needs_what_one_computes(precision):
    outcome = compiled(f"{PLAN}\nprecision: {precision}\ninstances: {{kind: gpu, dla: 1}}", top=at("25.08"))
    found = outcome.only("TG117")
    assert (found.location.path, found.message) == ("instances.0.dla", f"dla has no effect with precision: {precision}")
    assert not outcome.config.instance_group[0].secondary_devices


@pytest.mark.parametrize(("precision", "release", "codes"), [("fp16", "25.08", []), ("int8", "25.08", []), ("fp16", "26.08", []), ("fp32", "26.08", ["TG112"])])
def test_it_is_written_where_the_precision_or_the_file_may_have_it(precision, release, codes):
    outcome = compiled(f"{PLAN}\nprecision: {precision}\ninstances: {{kind: gpu, dla: 1}}", top=at(release))
    assert outcome.config.instance_group[0].secondary_devices[0].device_id == 1
    assert [found.code for found in outcome.found if found.location.path == "instances.0.dla"] == codes


def test_one_in_an_overlay_is_judged_like_one_in_instances():
    groups = "config: {instance_group: [{kind: KIND_GPU}, {kind: KIND_GPU, secondary_devices: [{kind: KIND_NVDLA, device_id: 7}]}]}"
    key, said = "config.instance_group.1.secondary_devices", []
    for keys in (f"{PLAN}\nprecision: bf16", f"{PLAN}\nprecision: fp16", "precision: fp32"):
        outcome = compiled(f"{keys}\n{groups}", top=at("25.08"))
        said.append([(found.code, found.message) for found in outcome.found if found.location.path == key])
    none_there = ("TG127", "there is most likely no deep learning accelerator 7: Jetson and Drive have 2, numbers 0 and 1")
    assert said == [
        [("TG117", "secondary_devices has no effect with precision: bf16"), none_there],
        [none_there],
        [("TG117", "secondary_devices has no effect with backend: onnxruntime"), none_there],
    ]
    newer = compiled(f"{PLAN}\n{groups}", top=at("26.08"))
    assert "computes in FP16 and INT8 only" in newer.only("TG112").message
    assert newer.only("TG112").location.path == key
    fallback = compiled(f"{PLAN}\nprecision: fp16\ntensorrt: {{build: {{gpu_fallback: false}}}}\n{groups}", top=at("25.08"))
    assert "TG117" not in fallback.codes


def test_a_release_newer_than_the_table_is_judged_as_the_script_builds_for_it():
    """That takes its TensorRT to be that of the newest release that is known, 11 or later."""
    found = compiled(f"{PLAN}\nprecision: bf16", top=at("31.01")).only("TG112")
    assert "release 31.01 has TensorRT 11.2.1 or newer, which takes precision from the model's own types" in found.message
    outcome = compiled(f"{PLAN}\nprecision: fp32\ninstances: {{kind: gpu, dla: 1}}", top=at("31.01"))
    assert outcome.codes == ["TG112"]
    assert outcome.config.instance_group[0].secondary_devices[0].device_id == 1
    tactics = f"{ACCELERATOR}\nonnxruntime: {{tensorrt: {{tactic_sources: {{cudnn: false}}}}}}"
    assert compiled(tactics, top=at("31.01")).only("TG117").message.endswith("TensorRT 11.2.1 or newer of release 31.01")


@pytest.mark.parametrize(("profiles", "words"), [("[3]", "the profile 3,"), ("[0, 1, 2]", "the profile 1, 2,")])
def test_profiles_that_the_plan_has_not_are_refused(profiles, words):
    outcome = compiled(f"{PLAN}\ninstances: {{kind: gpu, profiles: {profiles}}}", top=at("25.08"))
    found = outcome.only("TG122")
    assert (found.location.path, found.severity) == ("instances.0.profiles", Severity.ERROR)
    assert words in found.message
    assert not outcome.config.dynamic_batching.preferred_batch_size
    assert not any("profile" in remark for remark in outcome.remarks)


def test_the_profile_that_the_spec_describes_may_be_named():
    assert compiled(f"{PLAN}\ninstances: {{kind: gpu, profiles: [0]}}", top=at("25.08")).found == []


def test_integers_that_a_plan_makes_smaller_are_said():
    model = Signature((TensorSpec("ids", INT64, ("N", 4)),), (TensorSpec("y", INT64, ("N", 4)),))
    outcome = compiled(PLAN, model, top=at("24.04"))
    assert "input 'ids', output 'y' are INT64 in the model file and INT32 in its plan" in outcome.only("TG119").message
    assert any("INT32 in the plan and INT64 in the model file: input 'ids', output 'y'" in remark for remark in outcome.remarks)
    assert compiled(PLAN, model, top=at("24.05")).codes == []


@pytest.mark.parametrize(
    ("cosine", "shown", "percent"), [("0.9995", "0.9995", "99.95"), ("0.9999995", "0.9999995", "99.99995"), ("0.57", "0.57", "57"), ("1", "1", "100")]
)
def test_the_tolerance_is_said_as_the_spec_has_it(cosine, shown, percent):
    model = ModelSpec.model_validate({"name": "m", "source": "m.onnx", "precision": "fp16", "conversion": {"cosine": float(cosine)}})
    findings = Findings("m", lambda key: Location(".".join(map(str, key))), lambda key: False)
    judge_agreement(model, Comparison(agreements=(Agreement("y", 1, values=4, equal=1),)), findings)
    (found,) = findings.found
    assert f"(output 'y' at a batch of 1: 25 % of the values are equal (1 of 4); wanted: cosine {shown} and the same top-1, " in found.message
    assert f"of whole numbers, truth values and text {percent} % equal)" in found.message
