"""The final config of a plan, overlay included: what Triton would refuse since the plan's profiles do not take it."""

import pytest

from tests.unit.render.compiling import FP32, compiled, signature
from tritongen.diagnostics import Severity
from tritongen.signature import Signature, TensorSpec

RANGE = "backend: tensorrt\nbatching: {max: 8}\nshapes: {x: {min: [1], opt: [8], max: [32]}}\n"
BUCKETS = (
    "backend: tensorrt\nbatching: {max: 8}\n"
    "tensorrt: {profiles: [{shapes: {x: {min: [1], opt: [8], max: [16]}}}, {shapes: {x: {min: [17], opt: [32], max: [32]}}}]}\n"
)
TEXT = signature(("N", "S"))


@pytest.mark.parametrize(
    ("keys", "code", "place", "words"),
    [
        ("config: {input: [{name: x, dims: [33]}]}", "TG186", "config.input.0.dims", "input 'x' has the dims [33], and the plan takes [1 to 32]"),
        ("config: {input: [{name: x, dims: [4, 4]}]}", "TG186", "config.input.0.dims", "the dims [4, 4]"),
        ("config: {input: [{name: x, dims: [4, 8], reshape: {shape: [40]}}]}", "TG186", "config.input.0.dims", "the dims [40]"),
        (
            "config: {instance_group: [{kind: KIND_GPU}, {kind: KIND_GPU, profile: ['3']}]}",
            "TG122",
            "config.instance_group.1.profile",
            "has one profile, number 0, and no other",
        ),
        (
            "config: {model_warmup: [{name: w, batch_size: 1, inputs: {x: {data_type: TYPE_FP32, dims: [40], zero_data: true}}}]}",
            "TG186",
            "config.model_warmup.0.inputs.x",
            "the warmup sample 'w' gives 'x' the dims [40], and the plan takes [1 to 32]",
        ),
    ],
)
def test_what_the_overlay_states_outside_the_plan_is_refused_where_it_stands(keys, code, place, words):
    found = compiled(RANGE + keys, TEXT).only(code)
    assert (str(found.location), found.severity) == (place, Severity.ERROR)
    assert words in found.message


@pytest.mark.parametrize(
    "keys",
    [
        "config: {input: [{name: x, dims: [32]}]}",
        "config: {input: [{name: x, dims: [-1]}]}",
        "config: {input: [{name: x, dims: [4, 8], reshape: {shape: [32]}}]}",
        "config: {instance_group: [{kind: KIND_GPU, profile: ['0']}]}",
    ],
)
def test_what_the_plan_takes_may_be_stated(keys):
    assert compiled(RANGE + keys, TEXT).codes == []


def test_dims_must_lie_in_every_profile_that_copies_use():
    found = compiled(f"{BUCKETS}config: {{input: [{{name: x, dims: [16]}}]}}", TEXT).only("TG186")
    assert "the plan takes [17 to 32]" in found.message
    only_first = "{input: [{name: x, dims: [16]}], instance_group: [{kind: KIND_GPU, profile: ['0']}]}"
    assert "TG186" not in compiled(f"{BUCKETS}config: {only_first}", TEXT).codes


def test_fixed_sizes_of_the_model_are_the_plans_and_the_place_is_the_overlays_own():
    model = Signature((TensorSpec("a", FP32, ("N", 8)), TensorSpec("b", FP32, ("N", 4))), (TensorSpec("y", FP32, ("N", 8)),))
    found = compiled("backend: tensorrt\nconfig: {input: [{name: b, dims: [5]}]}", model).only("TG186")
    assert str(found.location) == "config.input.0.dims"
    assert found.message == "input 'b' has the dims [5], and the plan takes [4]"


def test_profiles_that_are_not_known_are_not_counted():
    assert compiled("backend: tensorrt\ninstances: {kind: gpu, profiles: [1]}\ntensorrt: {profiles: [{batch: 1}, {batch: 2}]}", TEXT).codes == ["TG108"]


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        ("instances: [{kind: gpu, dla: 0}, {kind: gpu, dla: 1}]", "instances.1", "on deep learning accelerator 1, and others of the model on deep learning"),
        ("instances: [{kind: gpu}, {kind: gpu, dla: 1}]", "instances.0", "on the GPU alone, and others of the model on deep learning accelerator 1"),
        (
            "config: {instance_group: [{kind: KIND_GPU, secondary_devices: [{kind: KIND_NVDLA, device_id: 0}]}, {kind: KIND_GPU}]}",
            "config.instance_group.1",
            "on the GPU alone, and others of the model on deep learning accelerator 0",
        ),
    ],
)
def test_copies_on_several_devices_have_no_plan_in_common(keys, place, words):
    found = compiled(f"{RANGE}precision: fp16\n{keys}", TEXT).only("TG127")
    assert (str(found.location), found.severity) == (place, Severity.ERROR)
    assert words in found.message


def test_copies_on_one_accelerator_may_be_in_several_groups():
    assert compiled(f"{RANGE}precision: fp16\ninstances: [{{kind: gpu, dla: 1}}, {{kind: gpu, dla: 1, gpus: [0]}}]", TEXT).codes == []
