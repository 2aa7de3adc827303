"""`tritongen estimate`, and what `render` says of memory."""

from __future__ import annotations

import json

import networks
import pytest
from click import BadParameter
from click.testing import CliRunner
from onnx import TensorProto, helper
from rewrite_graphs import floats

from tests.unit.workflow.rewriting import flattening, render
from tritongen.cli.estimate import command
from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.memory.estimate import CONTEXT_BYTES, HANDLES_BYTES
from tritongen.spec.units import about_size
from tritongen.workflow.estimating import estimate_spec
from tritongen.workflow.rendering import plan_render

WIDE = 1 << 16


def wide(path, *, batch="N", width=4):
    """`x: float32[batch, 4] → y: float32[batch, 65536]`: 1 MiB of weights, and 256 KiB for each row."""
    return networks.save(
        path,
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        [("x", TensorProto.FLOAT, [batch, width])],
        [("y", TensorProto.FLOAT, [batch, WIDE])],
        [floats("w", 4, WIDE)],
    )


def spec(folder, keys, top=""):
    wide(folder / "m.onnx")
    lines = "\n".join("    " + line for line in keys.strip().splitlines())
    path = folder / "spec.yaml"
    path.write_text(f"version: 1\n{top}\nmodels:\n  - name: m\n    source: m.onnx\n{lines}\n")
    return path


def share(folder, keys):
    (gpu,) = estimate_spec(spec(folder, keys)).estimate.gpus
    return gpu.shares["m"]


def test_sizes_follow_from_the_batching_the_precision_and_the_copies(tmp_path):
    found = share(tmp_path, "batching: {max: 16}\ninstances: {kind: gpu, count: 2}")
    assert (found.copies, found.weights, found.activations) == (2, 2 * 4 * WIDE * 4, 2 * 2 * (2 * 16 * WIDE * 4))
    halved = share(tmp_path, "batching: {max: 16}\nprecision: fp16\nconversion: {keep_io_types: false}\ninstances: {kind: gpu, count: 2}")
    assert (2 * halved.weights, 2 * halved.activations) == (found.weights, found.activations)
    exact = share(tmp_path, "batching: {max: 16}\nonnxruntime: {cuda: {arena_extend_strategy: same_as_requested}}\ninstances: {kind: gpu, count: 2}")
    assert 2 * exact.activations == found.activations


@pytest.mark.parametrize(
    ("release", "keys", "part"),
    [
        ("25.08", "precision: fp16", 1 / 2),
        ("25.08", "precision: fp16\nconversion: {fp32_operators: [MatMul]}", 1),
        ("25.08", "precision: bf16", 1 / 2),
        ("26.08", "precision: bf16", 1),
        ("27.01", "precision: bf16", 1),
    ],
)
def test_render_and_estimate_halve_the_same(release, keys, part, tmp_path):
    """By what stays in FP32 in the file, and by the flags that the release's TensorRT still has."""
    top = f'triton: {{release: "{release}", gpu_memory: 1MiB}}'
    path = spec(tmp_path, f"backend: tensorrt\nbatching: {{max: 16}}\nprove: false\n{keys}", top)
    (gpu,) = estimate_spec(path).estimate.gpus
    assert gpu.shares["m"].weights == 4 * WIDE * 4 * part
    rendered = [found for found in plan_render(path).findings if found.code == "TG185"]
    assert [found.message.partition(" (")[0] for found in rendered] == [f"the models are estimated to take {about_size(gpu.total)} of 1.00 MiB"]


def test_a_plan_has_activations_for_each_of_its_profiles_and_no_arena(tmp_path):
    one = share(tmp_path, "backend: tensorrt\nbatching: {max: 16}")
    assert one.activations == 2 * 16 * WIDE * 4
    two = share(tmp_path, "backend: tensorrt\nbatching: {max: 16, preferred: [8, 16]}")
    assert two.activations == 2 * one.activations
    bounded = share(tmp_path, "backend: tensorrt\nbatching: {max: 16}\ntensorrt: {build: {max_workspace_size: 1MiB}}")
    assert (one.scratch, bounded.scratch) == (2 * 16 * WIDE * 4, 1 << 20)


def test_a_batch_that_is_made_variable_is_followed(tmp_path):
    flattening(tmp_path / "f.onnx")
    path = tmp_path / "spec.yaml"
    path.write_text("version: 1\nmodels: [{name: m, source: f.onnx, rebatch: true, batching: {max: 64}, instances: {kind: gpu}}]\n")
    found = estimate_spec(path).estimate
    assert found.models[0].batch == 64
    assert found.gpus[0].shares["m"].activations == 2 * (64 * (12 + 4) * 4)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f.onnx", "spec.yaml"]


def test_versions_that_are_served_count_and_others_do_not(tmp_path):
    for number in (1, 2):
        wide(tmp_path / f"{number}.onnx")
    path = tmp_path / "spec.yaml"
    for policy, names in (("all", ["m (version 1)", "m (version 2)"]), ("latest", ["m"])):
        path.write_text(f"version: 1\nmodels: [{{name: m, sources: {{1: 1.onnx, 2: 2.onnx}}, versions: {{policy: {policy}}}}}]\n")
        assert [model.name for model in estimate_spec(path).estimate.models] == names


@pytest.mark.parametrize(("memory", "code", "words"), [("8GiB", 0, "it fits"), ("800MiB", 1, "it does not fit")])
def test_the_command_says_what_fits_and_fails_where_it_does_not(memory, code, words, tmp_path):
    path = spec(tmp_path, "batching: {max: 1024}\ninstances: {kind: gpu}", top=f"triton: {{gpu_memory: {memory}}}")
    outcome = CliRunner().invoke(command, [str(path)], standalone_mode=False)
    assert outcome.return_value == code
    assert words in outcome.output
    largest = int(outcome.output.splitlines()[2].split()[-1])
    again = spec(tmp_path, f"batching: {{max: {largest}}}\ninstances: {{kind: gpu}}", top=f"triton: {{gpu_memory: {memory}}}")
    assert CliRunner().invoke(command, [str(again)], standalone_mode=False).return_value == 0
    beyond = spec(tmp_path, f"batching: {{max: {largest + 1}}}\ninstances: {{kind: gpu}}", top=f"triton: {{gpu_memory: {memory}}}")
    assert CliRunner().invoke(command, [str(beyond)], standalone_mode=False).return_value == 1
    assert CliRunner().invoke(command, [str(beyond), "--gpu-memory", "64GiB"], standalone_mode=False).return_value == 0


def test_json_has_the_parts_in_bytes(tmp_path):
    outcome = CliRunner().invoke(command, [str(spec(tmp_path, "batching: {max: 2}\ninstances: {kind: gpu}")), "--format", "json"], standalone_mode=False)
    found = json.loads(outcome.stdout)
    assert (found["memory"], found["fits"], found["complete"], found["error"]) == (None, None, True, None)
    (gpu,) = found["gpus"]
    assert gpu["models"]["m"]["weights"] == found["models"][0]["weights"] == 4 * WIDE * 4
    assert gpu["total"] == gpu["context"] + gpu["models"]["m"]["total"]
    assert gpu["context"] == CONTEXT_BYTES
    assert gpu["models"]["m"]["handles"] == HANDLES_BYTES


def test_without_memory_and_on_the_cpu_the_text_says_so(tmp_path):
    text = CliRunner().invoke(command, [str(spec(tmp_path, "instances: {kind: gpu}"))], standalone_mode=False).output
    assert "No memory is named" in text
    assert "largest batch" not in text
    text = CliRunner().invoke(command, [str(spec(tmp_path, "instances: {kind: cpu}"))], standalone_mode=False).output
    assert text.startswith("On the CPU, and in no GPU's memory: m.\n")


def test_what_is_not_known_is_said(tmp_path):
    networks.save(
        tmp_path / "s.onnx",
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NonZero", ["a"], ["i"], name="found"), helper.make_node("Identity", ["i"], ["y"])],
        [("x", TensorProto.FLOAT, ["N", "L"])],
        [("y", TensorProto.INT64, [2, "M"])],
    )
    path = tmp_path / "spec.yaml"
    path.write_text("version: 1\nmodels: [{name: m, source: s.onnx, batching: none, instances: {kind: gpu}, warmup: none}]\n")
    text = CliRunner().invoke(command, [str(path)], standalone_mode=False).output
    assert "Not known of m: the sizes of 'x' are not known: give them in shapes" in text
    path.write_text("version: 1\nmodels: [{name: m, source: s.onnx, batching: none, instances: {kind: gpu}, shapes: {x: [4, 4]}}]\n")
    text = CliRunner().invoke(command, [str(path)], standalone_mode=False).output
    assert "from NonZero 'found' on" in text
    assert "Each GPU: at least" in text


@pytest.mark.parametrize(("memory", "code", "fits"), [("8GiB", 0, None), ("640MiB", 1, False)])
def test_what_is_known_of_a_model_of_unknown_sizes_counts(memory, code, fits, tmp_path):
    """600 MiB for CUDA, 70 for a copy and 1 for weights: too much for 640, and who knows for 8 GiB."""
    wide(tmp_path / "m.onnx", width="W")
    path = tmp_path / "spec.yaml"
    path.write_text("version: 1\nmodels: [{name: m, source: m.onnx, batching: {max: 4}, instances: {kind: gpu}, warmup: none}]\n")
    text = CliRunner().invoke(command, [str(path), "--gpu-memory", memory], standalone_mode=False)
    assert text.return_value == code
    assert ("it does not fit" if code else "it fits as far as is known") in text.output
    assert "Not known of m: " in text.output
    outcome = CliRunner().invoke(command, [str(path), "--gpu-memory", memory, "--format", "json"], standalone_mode=False)
    found = json.loads(outcome.stdout)
    assert (found["fits"], found["gpus"][0]["fits"], found["complete"]) == (fits, fits, False)
    (model,) = found["models"]
    assert (model["weights"], model["activations"], model["largest_batch"]) == (4 * WIDE * 4, None, None)
    assert found["gpus"][0]["total"] == CONTEXT_BYTES + HANDLES_BYTES + 4 * WIDE * 4


def test_render_counts_what_is_known_of_a_model_of_unknown_sizes(tmp_path):
    wide(tmp_path / "m.onnx", width="W")
    keys = "source: m.onnx\nbatching: {max: 4}\nwarmup: none\nprove: false\ninstances: {kind: gpu}"
    small = render(tmp_path, keys, top='triton: {release: "25.08", gpu_memory: 640MiB}', apply=False).one("TG185")
    assert "are estimated to take at least 671 MiB of 640 MiB (Each GPU): m at least 71.0 MiB" in small.message
    assert small.hint.startswith("lower batching.max, the counts of instances")
    assert "TG185" not in render(tmp_path, keys, top='triton: {release: "25.08", gpu_memory: 8GiB}', apply=False).codes


@pytest.mark.parametrize("size", ["0B", "0", "0GiB"])
def test_no_memory_at_all_is_refused(size, tmp_path):
    with pytest.raises(BadParameter, match="is too small: at least 1 byte"):
        CliRunner().invoke(command, [str(spec(tmp_path, "instances: {kind: gpu}")), "--gpu-memory", size], standalone_mode=False, catch_exceptions=False)


def test_json_is_one_object_for_a_spec_that_cannot_be_used(tmp_path):
    path = spec(tmp_path, "shapes: {z: [4]}")
    outcome = CliRunner().invoke(command, [str(path), "--format", "json"], standalone_mode=False)
    assert isinstance(outcome.exception, InputError)
    found = json.loads(outcome.stdout)
    assert (found["error"]["exit_code"], found["fits"], found["models"], found["gpus"]) == (2, None, [], [])
    (finding,) = [each for each in found["findings"] if each["severity"] == "error"]
    assert (finding["code"], finding["line"]) == ("TG103", 6)
    assert found.keys() == json.loads(CliRunner().invoke(command, [str(spec(tmp_path, "instances: {kind: gpu}")), "--format", "json"]).stdout).keys()


def test_everything_that_is_wrong_with_the_spec_is_said_at_once(tmp_path):
    wide(tmp_path / "m.onnx")
    path = tmp_path / "spec.yaml"
    path.write_text("version: 1\nmodels:\n  - {name: a, source: gone.onnx}\n  - {name: b, source: m.onnx, shapes: {z: [4]}}\n  - {name: c, source: m.onnx}\n")
    with pytest.raises(InputError) as caught:
        estimate_spec(path)
    assert [(found.code, found.model) for found in caught.value.diagnostics if found.severity is Severity.ERROR] == [("TG020", "a"), ("TG103", "b")]


def test_render_warns_where_the_named_memory_is_not_enough(tmp_path):
    wide(tmp_path / "m.onnx")
    keys = "source: m.onnx\nbatching: {max: 1024, preferred: none}\nwarmup: none\nprove: false\ninstances: {kind: gpu, gpus: [1]}"
    small = render(tmp_path, keys, top='triton: {release: "25.08", gpu_memory: 1GiB}', apply=False).one("TG185")
    assert (small.severity, small.location.line) == (Severity.WARNING, 2)
    assert "are estimated to take 2.16 GiB of 1.00 GiB (GPU 1): m 1.57 GiB" in small.message
    largest = int(small.hint.partition("m: ")[2].partition(")")[0])
    better = keys.replace("max: 1024", f"max: {largest}")
    assert "TG185" not in render(tmp_path, better, top='triton: {release: "25.08", gpu_memory: 1GiB}', apply=False).codes
    worse = keys.replace("max: 1024", f"max: {largest + 1}")
    assert "TG185" in render(tmp_path, worse, top='triton: {release: "25.08", gpu_memory: 1GiB}', apply=False).codes


def test_memory_without_a_copy_on_a_gpu_has_no_effect(tmp_path):
    wide(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\ninstances: {kind: cpu}", top='triton: {release: "25.08", gpu_memory: 1GiB}', apply=False).one("TG117")
    assert found.message == "triton.gpu_memory has no effect: no model has copies on a GPU"


def test_render_counts_the_earlier_versions_that_stay(tmp_path):
    """Triton loads both, each with activations of its own."""
    wide(tmp_path / "m.onnx")
    keys = "source: m.onnx\nbatching: {max: 1024, preferred: none}\nwarmup: none\nprove: false\ninstances: {kind: gpu}\nversion: auto\nversions: {count: 2}"
    top = 'triton: {release: "25.08", gpu_memory: 3GiB}'
    assert "TG185" not in render(tmp_path, keys, top=top).codes
    networks.save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Neg", ["a"], ["y"])],
        [("x", TensorProto.FLOAT, ["N", 4])],
        [("y", TensorProto.FLOAT, ["N", WIDE])],
        [floats("w", 4, WIDE)],
    )
    assert "m (version 1) 1.57 GiB, m (version 2)" in render(tmp_path, keys, top=top, apply=False).one("TG185").message
