"""The profiles of a plan: what they are derived from, and which sizes they must cover."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.unit.render.compiling import FP32, compiled, signature
from tritongen import dtypes
from tritongen.diagnostics import Severity
from tritongen.recipe import Profile, Span
from tritongen.render.profiles import _uncovered
from tritongen.signature import Signature, TensorSpec

TEXT = signature(("N", "S"))
SHAPES = "shapes: {x: {min: [16], opt: [128], max: [512]}}"
BUCKETS = "tensorrt: {profiles: [{batch: 8, shapes: {x: {min: [16], opt: [64], max: [128]}}}, {shapes: {x: {min: [129], opt: [512], max: [512]}}}]}"


def spans(profiles):
    return [{name: (span.minimum, span.optimum, span.maximum) for name, span in profile.shapes.items()} for profile in profiles]


def test_one_profile_is_tuned_for_what_the_batcher_forms():
    assert spans(compiled("backend: tensorrt\nbatching: {max: 16}").profiles) == [{"x": ((1, 8), (16, 8), (16, 8))}]
    assert spans(compiled("backend: tensorrt\nbatching: {max: 16, preferred: [4]}").profiles) == [{"x": ((1, 8), (4, 8), (16, 8))}]


def test_each_preferred_size_that_the_spec_names_has_a_profile_and_copies_use_them_all():
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16, preferred: [4, 16]}}\n{SHAPES}", TEXT)
    assert spans(outcome.profiles) == [{"x": ((1, 16), (4, 128), (16, 512))}, {"x": ((1, 16), (16, 128), (16, 512))}]
    assert list(outcome.config.instance_group[0].profile) == ["0", "1"]


def test_before_tensorrt_10_derived_profiles_become_one_with_a_note():
    """trtexec of TensorRT 8.6 builds one profile, and nothing else builds for it."""
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16, preferred: [4, 8]}}\n{SHAPES}", TEXT, top='triton: {release: "24.02"}')
    assert spans(outcome.profiles) == [{"x": ((1, 16), (8, 128), (16, 512))}]
    assert not outcome.config.instance_group[0].profile
    said = outcome.only("TG184")
    assert said.severity is Severity.ADVICE
    assert said.message == "the plan has one profile, tuned for batches of 8: no plan with several can be built for release 24.02"


def test_buckets_alone_say_which_sizes_there_are():
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16}}\n{BUCKETS}", TEXT)
    assert outcome.codes == []
    assert spans(outcome.profiles) == [{"x": ((1, 16), (8, 64), (16, 128))}, {"x": ((1, 129), (16, 512), (16, 512))}]
    (warmed, *_) = outcome.config.model_warmup
    assert list(warmed.inputs["x"].dims) == [64], "the usual size of the first profile"
    assert list(outcome.config.input[0].dims) == [-1]


def test_copies_must_take_every_bucket():
    found = compiled(f"backend: tensorrt\nbatching: {{max: 16}}\n{BUCKETS}\ninstances: [{{kind: gpu, profiles: [0]}}]", TEXT).only("TG124")
    assert found.message == "profiles 0 of these copies do not cover the sizes in all profiles: none takes x [1, 129]"


def test_buckets_of_two_dimensions_need_not_fill_the_square_between_them():
    both = "{profiles: [{shapes: {x: {min: [1, 1], opt: [4, 4], max: [8, 8]}}}, {shapes: {x: {min: [9, 9], opt: [16, 16], max: [16, 16]}}}]}"
    assert compiled(f"backend: tensorrt\nbatching: {{max: 4}}\ntensorrt: {both}", signature(("N", "H", "W"))).codes == []


@pytest.mark.parametrize(("profiles", "code"), [("[{shapes: {x: [16]}}, {batch: 2}]", "TG108"), ("[{shapes: {x: [16]}}, {shapes: {x: [16, 4]}}]", "TG108")])
def test_an_input_that_a_profile_leaves_out_needs_shapes(profiles, code):
    assert compiled(f"backend: tensorrt\nbatching: {{max: 4}}\ntensorrt: {{profiles: {profiles}}}", TEXT).codes == [code]


def test_sizes_that_were_derived_do_not_make_profiles():
    outcome = compiled("backend: tensorrt\nbatching: {max: 8}\ntensorrt: {cuda_graphs: true}")
    assert list(outcome.config.dynamic_batching.preferred_batch_size) == [2, 4, 8]
    assert len(outcome.profiles) == 1
    assert not outcome.config.instance_group[0].profile


def test_without_batching_the_sizes_are_whole():
    outcome = compiled("backend: tensorrt\nbatching: none\nshapes: {x: {min: [1, 16], opt: [1, 128], max: [2, 512]}}", TEXT)
    assert spans(outcome.profiles) == [{"x": ((1, 16), (1, 128), (2, 512))}]


def test_fixed_inputs_need_no_profile():
    assert compiled("backend: tensorrt", signature((1, 8))).profiles == ()


def test_buckets_of_lengths():
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16}}\n{SHAPES}\n{BUCKETS}", TEXT)
    assert outcome.codes == []
    assert spans(outcome.profiles) == [{"x": ((1, 16), (8, 64), (16, 128))}, {"x": ((1, 129), (16, 512), (16, 512))}]


def test_buckets_that_leave_a_gap_are_refused_with_a_request_that_falls_into_it():
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16}}\n{SHAPES}\n{BUCKETS.replace('129', '131')}", TEXT)
    assert "x [1, 129]" in outcome.only("TG124").message


def test_a_group_of_copies_must_take_every_request():
    outcome = compiled(f"backend: tensorrt\n{SHAPES}\n{BUCKETS}\ninstances: [{{kind: gpu}}, {{kind: gpu, profiles: [1]}}]", TEXT)
    found = outcome.only("TG124")
    assert str(found.location) == "instances.1.profiles"
    assert "x [1, 16]" in found.message


def test_dimensions_of_one_symbol_are_one_when_gaps_are_looked_for():
    model = Signature((TensorSpec("ids", FP32, ("N", "S")), TensorSpec("mask", FP32, ("N", "S"))), (TensorSpec("y", FP32, ("N", 8)),))
    ranges = "{min: [1], opt: [64], max: [512]}"
    buckets = ", ".join(f"{{shapes: {{ids: {span}, mask: {span}}}}}" for span in ("{min: [1], opt: [64], max: [128]}", "{min: [129], opt: [300], max: [512]}"))
    keys = f"backend: tensorrt\nshapes: {{ids: {ranges}, mask: {ranges}}}\ntensorrt: {{profiles: [{buckets}]}}"
    assert compiled(keys, model).codes == []
    apart = Signature((model.inputs[0], TensorSpec("mask", FP32, ("N", "T"))), model.outputs)
    assert "none takes ids [1, 129], mask [1, 1]" in compiled(keys, apart).only("TG124").message


@pytest.mark.parametrize(
    ("written", "code", "place"),
    [
        ("{batch: 32}", "TG123", "tensorrt.profiles.0.batch"),
        ("{shapes: {z: [3]}}", "TG103", "tensorrt.profiles.0.shapes.z"),
        ("{shapes: {x: [3, 3]}}", "TG104", "tensorrt.profiles.0.shapes.x"),
    ],
)
def test_profiles_that_do_not_fit_the_model(written, code, place):
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 16}}\n{SHAPES}\ntensorrt: {{profiles: [{written}]}}", TEXT)
    assert [(found.code, str(found.location)) for found in outcome.found] == [(code, place)]


@pytest.mark.parametrize(("keys", "place"), [("batching: none", "tensorrt.profiles.0.batch"), ("", "tensorrt.profiles")])
def test_what_has_no_effect_is_said(keys, place):
    model, shapes = (TEXT, "shapes: {x: [1, 16]}") if keys else (signature((1, 8)), "")
    outcome = compiled(f"backend: tensorrt\n{keys}\n{shapes}\ntensorrt: {{profiles: [{{batch: 1}}]}}", model)
    assert place in [str(found.location) for found in outcome.found if found.code == "TG117"]


SIZE = TensorSpec("size", dtypes.from_wire("INT64"), (2,))
RESIZE = Signature((TensorSpec("x", FP32, (1, 3)), SIZE), (TensorSpec("y", FP32, (1, 3)),))
VALUES = "tensorrt: {shape_tensors: {size: {min: [1, 1], opt: [2, 2], max: [4, 4]}}}"


def test_a_shape_tensor_has_its_values_in_the_profile_and_its_mark_in_the_config():
    outcome = compiled(f"backend: tensorrt\nbatching: none\n{VALUES}", RESIZE)
    assert outcome.codes == []
    assert outcome.profiles == (Profile({}, {"size": Span((1, 1), (2, 2), (4, 4))}),)
    assert [tensor.is_shape_tensor for tensor in outcome.config.input] == [False, True]


@pytest.mark.parametrize(
    ("keys", "model", "code"),
    [
        (VALUES.replace("size", "sise"), RESIZE, "TG103"),
        (VALUES.replace("[1, 1]", "[1, 1, 1]").replace("[2, 2]", "[2, 2, 2]").replace("[4, 4]", "[4, 4, 4]"), RESIZE, "TG125"),
        (VALUES.replace("size", "x"), RESIZE, "TG125"),
        (VALUES, Signature((TensorSpec("size", SIZE.dtype, (2, 2)),), RESIZE.outputs), "TG125"),
        (VALUES, Signature((TensorSpec("size", SIZE.dtype, ("N",)),), (TensorSpec("y", FP32, ("N", 3)),)), "TG125"),
    ],
)
def test_what_cannot_be_a_shape_tensor(keys, model, code):
    assert code in compiled(f"backend: tensorrt\n{keys}", model).codes


def test_several_kinds_of_gpu_have_a_plan_each():
    config = compiled('backend: tensorrt\ntensorrt: {build: {compute_capabilities: ["8.6", "12.0"]}}').config
    assert dict(config.cc_model_filenames) == {"8.6": "model.sm86.plan", "12.0": "model.sm120.plan"}


@pytest.mark.parametrize(
    ("keys", "code", "words"),
    [
        ("version_compatible: true", "TG174", "--backend-config=tensorrt,version-compatible=true"),
        ("plugins: [a.so, b.so]", "TG174", "--backend-config=tensorrt,plugins=a.so;b.so"),
        ("strip_weights: true", "TG126", "Triton puts none back"),
    ],
)
def test_what_a_server_needs_for_such_a_plan(keys, code, words):
    assert words in compiled(f"backend: tensorrt\ntensorrt: {{build: {{{keys}}}}}").only(code).message


@pytest.mark.parametrize("seed", range(20))
def test_gaps_are_those_that_trying_every_size_finds(seed):
    rng = random.Random(seed)

    def box():
        return {axis: tuple(sorted((rng.randint(1, 6), rng.randint(1, 6)))) for axis in "abc"}

    def holds(part, point):
        return all(low <= size <= high for (low, high), size in zip(part.values(), point, strict=True))

    wanted, boxes = box(), [box() for _ in range(rng.randint(1, 8))]
    missed = {point for point in itertools.product(range(1, 7), repeat=3) if holds(wanted, point) and not any(holds(part, point) for part in boxes)}
    found = _uncovered(wanted, boxes)
    assert (found is None) == (not missed)
    if found is not None:
        assert tuple(low for low, _ in found.values()) in missed
