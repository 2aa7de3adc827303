"""Spec and model files → plan, as `tritongen render` makes it."""

import shutil
from pathlib import Path

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.errors import InputError
from tritongen.modelconfig import parse_pbtxt
from tritongen.repository import Action, apply_plan
from tritongen.workflow.rendering import plan_render


def write(folder: Path, model: str, *, top: str = 'triton: {release: "25.08"}') -> Path:
    """A spec with one model named m; `model` is the rest of its mapping."""
    lines = "\n".join("    " + line for line in model.strip().splitlines())
    (folder / "spec.yaml").write_text(f"version: 1\n{top}\nmodels:\n  - name: m\n{lines}\n")
    return folder / "spec.yaml"


def config_of(rendering, name="m"):
    change = next(change for change in rendering.plan.changes if change.name == name)
    return parse_pbtxt(next(file for path, file in change.entry.files.items() if path.name == "config.pbtxt").content.decode())


def rendered(folder, model, **options):
    return config_of(plan_render(write(folder, model, **options)))


def errors(folder, model, **options):
    with pytest.raises(InputError) as error:
        plan_render(write(folder, model, **options))
    return {diagnostic.code: diagnostic for diagnostic in error.value.diagnostics}


def test_a_batching_model_is_described_by_one_row(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    config = rendered(tmp_path, "source: m.onnx\nbatching: {max: 8, preferred: [2, 4], max_queue_delay: 500us}")
    assert (config.platform, config.backend, config.max_batch_size) == ("onnxruntime_onnx", "onnxruntime", 8)
    assert [list(tensor.dims) for tensor in (*config.input, *config.output)] == [[8], [4]]
    assert list(config.dynamic_batching.preferred_batch_size) == [2, 4]
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert [(group.kind, group.count) for group in config.instance_group] == [(0, 1)]
    assert [sample.batch_size for sample in config.model_warmup] == [1, 2, 4, 8]
    assert not config.HasField("optimization")


def test_a_model_with_a_fixed_first_axis_has_full_dims_and_says_why(tmp_path):
    networks.mlp(tmp_path / "m.onnx", batch=1)
    rendering = plan_render(write(tmp_path, "source: m.onnx"))
    config = config_of(rendering)
    assert config.max_batch_size == 0
    assert [list(tensor.dims) for tensor in (*config.input, *config.output)] == [[1, 8], [1, 4]]
    assert not config.HasField("dynamic_batching")
    assert [sample.batch_size for sample in config.model_warmup] == [1]
    advice = next(finding for finding in rendering.findings if finding.code == "TG106")
    assert "input 'x' has the fixed first dimension 1" in advice.message
    assert "variable first axis" in advice.hint


def test_asking_such_a_model_to_batch_is_a_contradiction_of_the_model_but_not_of_defaults(tmp_path):
    networks.mlp(tmp_path / "m.onnx", batch=1)
    assert "TG105" in errors(tmp_path, "source: m.onnx\nbatching: {max: 8}")
    top = 'triton: {release: "25.08"}\ndefaults: {batching: {max: 8}}'
    assert rendered(tmp_path, "source: m.onnx", top=top).max_batch_size == 0


def test_a_tensor_that_is_only_the_batch_axis_is_reshaped(tmp_path):
    path = tmp_path / "m.onnx"
    networks.save(path, [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N"])], [("y", TensorProto.FLOAT, ["N"])])
    config = rendered(tmp_path, "source: m.onnx")
    for tensor in (config.input[0], config.output[0]):
        assert list(tensor.dims) == [1]
        assert tensor.HasField("reshape")
        assert list(tensor.reshape.shape) == []


def test_a_scalar_has_dims_of_one_and_no_reshape(tmp_path):
    path = tmp_path / "m.onnx"
    networks.save(path, [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, [])], [("y", TensorProto.FLOAT, [])])
    config = rendered(tmp_path, "source: m.onnx")
    assert config.max_batch_size == 0
    assert [list(tensor.dims) for tensor in (*config.input, *config.output)] == [[1], [1]]
    assert not config.input[0].HasField("reshape")


def test_a_shape_that_the_exporter_left_out_is_inferred(tmp_path):
    path = tmp_path / "m.onnx"
    networks.save(path, [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, None)])
    assert [list(tensor.dims) for tensor in rendered(tmp_path, "source: m.onnx").output] == [[3]]


def test_a_batch_axis_that_onnxruntime_knows_to_be_fixed_is_refused(tmp_path):
    path = tmp_path / "m.onnx"
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.ones((1, 3), np.float32))),
        helper.make_node("Identity", ["c"], ["y"]),
        helper.make_node("Neg", ["x"], ["z"]),
    ]
    networks.save(path, nodes, [("x", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, ["N", 3]), ("z", TensorProto.FLOAT, ["N", 3])])
    assert "TG143" in errors(tmp_path, "source: m.onnx")


def sequence_model(path: Path) -> None:
    """`ids: int64[N, S]` used as an index into 10 rows; S must be 4."""
    rng = np.random.default_rng(0)
    table = numpy_helper.from_array(rng.standard_normal((10, 2)).astype(np.float32), "table")
    shape = numpy_helper.from_array(np.array([-1, 8], np.int64), "shape")
    weights = numpy_helper.from_array(rng.standard_normal((8, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("Reshape", ["e", "shape"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    networks.save(path, nodes, [("ids", TensorProto.INT64, ["N", "S"])], [("y", TensorProto.FLOAT, ["M", 3])], [table, shape, weights])


def test_unknown_sizes_mean_no_warmup_and_a_hint(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    rendering = plan_render(write(tmp_path, "source: m.onnx"))
    assert not config_of(rendering).model_warmup
    finding = next(finding for finding in rendering.findings if finding.code == "TG121")
    assert "ids: [...]" in finding.hint
    assert "TG121" in errors(tmp_path, "source: m.onnx\nbatching: {max: 4}\nwarmup: [2]")


def test_given_sizes_are_warmed_up_with_zeros(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    config = rendered(tmp_path, "source: m.onnx\nshapes: {ids: [4]}")
    sample = config.model_warmup[0].inputs["ids"]
    assert list(sample.dims) == [4]
    assert sample.zero_data


def test_a_warmup_that_fails_is_refused_with_the_runtimes_reason(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    found = errors(tmp_path, "source: m.onnx\nbatching: {max: 4}\nshapes: {ids: [3]}")["TG142"]
    assert "batch size 1" in found.message
    assert "crash" in found.consequence
    assert not (tmp_path / "model_repository").exists()


def test_values_are_used_for_warmup_as_a_file(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    rendering = plan_render(write(tmp_path, "source: m.onnx\nsamples: {ids: [9, 8, 7, 6]}"))
    apply_plan(rendering.plan)
    sample = config_of(rendering).model_warmup[0].inputs["ids"]
    assert list(sample.dims) == [4]
    data = (tmp_path / "model_repository/m/warmup" / sample.input_data_file).read_bytes()
    assert np.frombuffer(data, "<i8").tolist() == [9, 8, 7, 6]
    np.save(tmp_path / "ids.npy", np.array([9, 8, 7, 6]))
    again = plan_render(write(tmp_path, "source: m.onnx\nsamples: {ids: ids.npy}"))
    assert [change.action for change in again.plan.changes] == [Action.KEEP]


@pytest.mark.parametrize(
    ("value", "words"),
    [("[1, 2, 3, 4.5]", "does not fit INT64"), ("text", "expected numbers"), ("[[1, 2], [3, 4]]", "expected the shape"), ("ids.npy", "cannot be read")],
)
def test_a_value_that_does_not_fit_is_refused(tmp_path, value, words):
    sequence_model(tmp_path / "m.onnx")
    (tmp_path / "ids.npy").write_text("no npy file")
    assert words in errors(tmp_path, f"source: m.onnx\nsamples: {{ids: {value}}}")["TG116"].message


def test_names_of_tensors_are_checked(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "labels.txt").write_text("a\nb\n")
    for text in ("shapes: {z: [1]}", "samples: {z: 1}", "labels: {z: labels.txt}"):
        assert "'z'" in errors(tmp_path, f"source: m.onnx\n{text}")["TG103"].message


def test_labels_are_copied_and_named(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "names.txt").write_text("a\nb\n")
    rendering = plan_render(write(tmp_path, "source: m.onnx\nlabels: {y: names.txt}"))
    apply_plan(rendering.plan)
    assert (tmp_path / "model_repository/m" / config_of(rendering).output[0].label_filename).read_text() == "a\nb\n"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("accelerator: tensorrt\ninstances: {kind: cpu}", "TG107"),
        ("accelerator: cuda\ninstances: {kind: cpu}", "TG107"),
        ("accelerator: openvino\ninstances: {kind: gpu}", "TG107"),
        ("backend: tensorrt\ninstances: {kind: cpu}", "TG107"),
        ("accelerator: tensorrt\nprecision: bf16", "TG110"),
        ("versions: {policy: specific, versions: [2]}", "TG109"),
        ("config: {max_batch_size: 3}", "TG130"),
        ("batching: {max: 4, max_queue_delay: 1ms}\nconfig: {sequence_batching: {direct: {}}}", "TG131"),
        ("config: {instance_group: [{kind: KIND_CPPU}]}", "TG132"),
        ("shapes: {x: [8, 1]}", "TG104"),
        ("shapes: {x: [7]}", "TG104"),
    ],
)
def test_what_contradicts_itself_is_refused_at_its_place(tmp_path, model, code):
    networks.mlp(tmp_path / "m.onnx")
    found = errors(tmp_path, f"source: m.onnx\n{model}")[code]
    assert found.location.path.endswith("spec.yaml")
    assert found.location.line >= 5
    assert found.model == "m"


def test_the_overlay_reaches_what_has_no_key(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    config = rendered(tmp_path, "source: m.onnx\nconfig: {response_cache: {enable: true}, dynamic_batching: {preserve_ordering: true}}")
    assert config.response_cache.enable
    assert config.dynamic_batching.preserve_ordering


def test_a_tensorrt_plan_keeps_its_source_where_triton_does_not_look(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    rendering = plan_render(write(tmp_path, "source: m.onnx\nbackend: tensorrt"))
    apply_plan(rendering.plan)
    assert config_of(rendering).platform == "tensorrt_plan"
    assert not list((tmp_path / "model_repository").rglob("*.onnx"))
    assert (tmp_path / "model_repository.artifacts/m/model.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_tensorrt_needs_every_size_and_its_own_dtypes(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    assert "TG108" in errors(tmp_path, "source: m.onnx\nbackend: tensorrt")
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.DOUBLE, ["N", 3])], [("y", TensorProto.DOUBLE, ["N", 3])])
    assert "FP64" in errors(tmp_path, "source: m.onnx\nbackend: tensorrt")["TG101"].message


@pytest.mark.parametrize(("release", "want"), [("24.04", "TYPE_INT32"), ("25.08", "TYPE_INT64")])
def test_the_integers_of_a_plan_follow_the_release(tmp_path, release, want):
    sequence_model(tmp_path / "m.onnx")
    config = rendered(tmp_path, "source: m.onnx\nbackend: tensorrt\nshapes: {ids: [4]}", top=f'triton: {{release: "{release}"}}')
    assert config.input[0].data_type == config.input[0].DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_name[want].number


def test_external_data_travels_with_its_model(tmp_path):
    networks.mlp(tmp_path / "src/m.onnx")
    model = onnx.load(tmp_path / "src/m.onnx")
    (tmp_path / "src/data").mkdir()
    onnx.save(model, tmp_path / "src/m.onnx", save_as_external_data=True, location="data/w.bin", size_threshold=0)
    apply_plan(plan_render(write(tmp_path, "source: src/m.onnx")).plan)
    assert (tmp_path / "model_repository/m/1/data/w.bin").read_bytes() == (tmp_path / "src/data/w.bin").read_bytes()
    (tmp_path / "src/data/w.bin").unlink()
    assert "TG034" in errors(tmp_path, "source: src/m.onnx")


def test_all_problems_of_all_models_come_at_once(tmp_path):
    networks.mlp(tmp_path / "m.onnx", batch=1)
    (tmp_path / "html.onnx").write_text("<!DOCTYPE html><html></html>")
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nmodels:\n  - {name: a, source: missing.onnx}\n  - {name: b, source: html.onnx}\n"
        "  - {name: c, source: m.onnx, batching: {max: 4}, config: {foo: 1}}\n"
    )
    with pytest.raises(InputError) as error:
        plan_render(tmp_path / "spec.yaml")
    assert [(found.model, found.code) for found in error.value.diagnostics] == [("a", "TG020"), ("b", "TG025"), ("c", "TG105"), ("c", "TG132")]
    assert not (tmp_path / "model_repository").exists()


def test_a_model_over_the_limit_is_not_run_and_that_is_said(tmp_path):
    sequence_model(tmp_path / "m.onnx")
    spec = write(tmp_path, "source: m.onnx\nshapes: {ids: [3]}")
    rendering = plan_render(spec, prove_limit_bytes=10)
    assert any(finding.code == "TG140" for finding in rendering.findings)
    proven = plan_render(write(tmp_path, "source: m.onnx\nshapes: {ids: [4]}"))
    unproven = plan_render(tmp_path / "spec.yaml", prove_limit_bytes=0)
    assert proven.plan == unproven.plan, "what is written must not depend on whether the proof could run"


def versions(folder):
    return sorted(path.name for path in (folder / "model_repository/m").iterdir() if path.is_dir())


def test_version_auto_counts_changed_weights_and_keeps_the_last(tmp_path):
    spec = write(tmp_path, "source: m.onnx\nversion: auto\nversions: {count: 2}")
    for seed, want in ((1, ["1"]), (1, ["1"]), (2, ["1", "2"]), (3, ["2", "3"]), (3, ["2", "3"])):
        networks.mlp(tmp_path / "m.onnx", seed=seed)
        apply_plan(plan_render(spec).plan)
        assert versions(tmp_path) == want
    networks.mlp(tmp_path / "again.onnx", seed=2)
    assert (tmp_path / "model_repository/m/2/model.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes()


def test_a_version_that_was_deleted_or_edited_by_hand_is_not_carried_on(tmp_path):
    spec = write(tmp_path, "source: m.onnx\nversion: auto\nversions: {count: 3}")

    def render(seed, **options):
        networks.mlp(tmp_path / "m.onnx", seed=seed)
        apply_plan(plan_render(spec, **options).plan)

    for seed in (1, 2, 3):
        render(seed)
    shutil.rmtree(tmp_path / "model_repository/m/1")
    render(3)
    assert versions(tmp_path) == ["2", "3"]
    (tmp_path / "model_repository/m/2/model.onnx").write_bytes(b"edited")
    with pytest.raises(InputError, match="changed by hand"):
        render(4)
    render(4, force=True)
    assert versions(tmp_path) == ["3", "4"]
    render(5)
    assert versions(tmp_path) == ["3", "4", "5"]


def test_the_output_does_not_depend_on_where_it_is_rendered(tmp_path):
    trees = []
    for name in ("one", "two/deeper"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        networks.mlp(folder / "m.onnx")
        apply_plan(plan_render(write(folder, "source: m.onnx\naccelerator: tensorrt")).plan)
        trees.append({path.relative_to(folder).as_posix(): path.read_bytes() for path in (folder / "model_repository").rglob("*") if path.is_file()})
    assert trees[0] == trees[1]


def test_the_committed_repository_is_what_the_quickstart_renders(tmp_path):
    """Weights are not committed; everything else is, byte for byte."""
    root = Path(__file__).parents[3]
    shutil.copytree(root / "examples/quickstart", tmp_path / "quickstart")
    with plan_render(tmp_path / "quickstart/spec.yaml", output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    fresh = {
        path.relative_to(tmp_path / "repo").as_posix(): path.read_text() for path in (tmp_path / "repo").rglob("*") if path.is_file() and path.suffix != ".onnx"
    }
    committed = {
        path.relative_to(root / "model_repository").as_posix(): path.read_text()
        for path in (root / "model_repository").rglob("*")
        if path.is_file() and path.suffix != ".onnx"
    }
    assert fresh == committed


def folding_model(path: Path) -> None:
    """`x[N, L] → y[M, 7]`: the file says that both have a batch axis, and the second has none."""
    shape = numpy_helper.from_array(np.array([-1, 7], np.int64), "shape")
    networks.save(
        path, [helper.make_node("Reshape", ["x", "shape"], ["y"])], [("x", TensorProto.FLOAT, ["N", "L"])], [("y", TensorProto.FLOAT, ["M", 7])], [shape]
    )


def test_an_output_with_other_rows_than_the_request_is_refused(tmp_path):
    folding_model(tmp_path / "m.onnx")
    found = errors(tmp_path, "source: m.onnx\nbatching: {max: 8}\nshapes: {x: [14]}")["TG145"]
    assert "output 'y' has 2 rows for a request of 1" in found.message
    assert "batching: none" in found.hint
    assert rendered(tmp_path, "source: m.onnx\nbatching: none\nshapes: {x: [1, 14]}").max_batch_size == 0


def test_a_sample_that_is_too_large_to_run_is_said_and_not_made(tmp_path):
    dims = ["N", 2**31, 2**31]
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, dims)], [("y", TensorProto.FLOAT, dims)])
    rendering = plan_render(write(tmp_path, "source: m.onnx\nbatching: {max: 1000000}"))
    assert [finding.code for finding in rendering.findings] == ["TG140", "TG140"]
    assert "MiB" in rendering.findings[0].message


def test_bfloat16_is_proven_like_any_other(tmp_path):
    networks.save(
        tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], [("x", TensorProto.BFLOAT16, ["N", 3])], [("y", TensorProto.BFLOAT16, ["N", 3])]
    )
    rendering = plan_render(write(tmp_path, "source: m.onnx", top='triton: {release: "26.08"}'))
    assert not rendering.findings
    assert len(config_of(rendering).model_warmup) == 2
    assert "TG361" in errors(tmp_path, "source: m.onnx"), "release 25.08 has no BF16 in its onnxruntime backend"


def custom_model(path: Path) -> None:
    """One operator of a domain that no ONNX Runtime knows."""
    node = helper.make_node("Mine", ["x"], ["y"], domain="org.example")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("x", "y")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.example", 1)]
    onnx.save(helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]), opset_imports=opsets, ir_version=9), path)


def test_an_operator_of_ones_own_cannot_be_proven_and_its_library_is_asked_for(tmp_path):
    custom_model(tmp_path / "m.onnx")
    bare = next(finding for finding in plan_render(write(tmp_path, "source: m.onnx")).findings if finding.code == "TG140")
    assert "org.example" in bare.message
    assert "op_libraries: [" in bare.hint
    for key in ("op_libraries: [libmine.so]", "config: {model_operations: {op_library_filename: [libmine.so]}}"):
        named = plan_render(write(tmp_path, f"source: m.onnx\n{key}"))
        assert next(finding for finding in named.findings if finding.code == "TG140").hint == ""
        assert list(config_of(named).model_operations.op_library_filename) == ["libmine.so"]


def test_an_opset_that_no_release_has_is_refused(tmp_path):
    networks.save(
        tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, ["N", 3])], opset=99
    )
    assert "pset" in errors(tmp_path, "source: m.onnx")["TG141"].message


def test_an_input_without_a_shape_is_said_to_be_served_as_one_element(tmp_path):
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, None)], [("y", TensorProto.FLOAT, None)])
    rendering = plan_render(write(tmp_path, "source: m.onnx"))
    assert "one element" in next(finding for finding in rendering.findings if finding.code == "TG118").consequence
    assert "with a shape" in errors(tmp_path, "source: m.onnx\nshapes: {x: [2, 3]}")["TG104"].hint


def test_a_wrong_size_is_one_finding(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    assert set(errors(tmp_path, "source: m.onnx\nbatching: {max: 2}\nshapes: {x: [7]}")) == {"TG104"}


def test_a_file_that_is_no_model_is_reported_where_the_spec_names_it(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    found = errors(tmp_path, "source: m.onnx")["TG023"]
    assert (found.location.line, found.location.column) == (5, 5)
    assert found.location.path.endswith("spec.yaml")
    assert "m.onnx" in found.message


def test_a_path_that_is_no_text_is_rendered_without_a_proof(tmp_path):
    import os

    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff"))
    folder.mkdir()
    networks.mlp(folder / "m.onnx")
    rendering = plan_render(write(folder, "source: m.onnx"))
    assert "not UTF-8" in next(finding for finding in rendering.findings if finding.code == "TG140").message


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("config: {dynamic_batching: {priority_levels: 2}}", "TG270"),
        ("config: {optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: tensorrt, parameters: {trt_fp16_enable: '1'}}]}}}", "TG292"),
        ("config: {input: [{name: x, dims: [3]}]}", "TG144"),
        ("config: {instance_group: [{kind: KIND_CPU, gpus: [0]}]}", "TG280"),
    ],
)
def test_what_check_would_find_wrong_is_not_written(tmp_path, model, code):
    networks.mlp(tmp_path / "m.onnx")
    found = errors(tmp_path, f"source: m.onnx\nwarmup: none\n{model}")[code]
    assert found.location.line == 7
    assert "config" in found.location.text


def test_what_is_rendered_passes_check(tmp_path, tritongen):
    sequence_model(tmp_path / "m.onnx")
    plan_spec = write(tmp_path, "source: m.onnx\nshapes: {ids: [4]}\naccelerator: tensorrt\nbatching: {max: 8, preferred: [4]}")
    assert tritongen("render", plan_spec).code == 0
    checked = tritongen("check", tmp_path / "model_repository", "--release", "25.08", "--strict")
    assert (checked.code, checked.out.count("error")) == (0, 0), checked.out
