"""`freeze`, `rebatch`, `prove` and `optimize`, from the spec to the file in the repository."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.unit.workflow.rewriting import answers, centred, flattening, left_beside, render, sequence, served
from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.releases import find_release
from tritongen.repository import apply_plan, read_stamp
from tritongen.signature import read_onnx
from tritongen.workflow.rendering import plan_render
from tritongen.workflow.starting import starter_text

X = np.random.default_rng(1).standard_normal((3, 3, 4)).astype(np.float32)


def content(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_fixed_batch_is_made_variable_and_the_config_follows(tmp_path):
    path = flattening(tmp_path / "m.onnx")
    before = path.read_bytes()
    outcome = render(tmp_path, "source: m.onnx\nrebatch: true\nbatching: {max: 4}")
    assert outcome.findings == ()
    assert outcome.config.max_batch_size == 4
    assert [list(tensor.dims) for tensor in (*outcome.config.input, *outcome.config.output)] == [[3, 4], [4]]
    (three,), ones = answers(served(tmp_path), x=X), [answers(path, x=X[row : row + 1])[0] for row in range(3)]
    np.testing.assert_allclose(three, np.concatenate(ones), rtol=1e-5)
    assert path.read_bytes() == before, "the source is never touched"
    assert left_beside(tmp_path) == []


def test_a_rebatched_file_is_the_same_everywhere_and_found_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        flattening(tmp_path / name / "m.onnx")
        render(tmp_path / name, "source: m.onnx\nrebatch: true\noptimize: offline")
    one, two = (served(tmp_path / name) for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert (one.parents[1] / "config.pbtxt").read_bytes() == (two.parents[1] / "config.pbtxt").read_bytes()
    again = render(tmp_path / "one", "source: m.onnx\nrebatch: true\noptimize: offline")
    assert (again.action, again.findings) == ("keep", ())


def test_what_cannot_be_rebatched_is_refused_with_the_node(tmp_path):
    stored = [numpy_helper.from_array(np.eye(1, dtype=np.float32), "one")]
    nodes = [helper.make_node("MatMul", ["one", "x"], ["y"], name="pins")]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [1, 4])], [("y", TensorProto.FLOAT, [1, 4])], stored)
    outcome = render(tmp_path, "source: m.onnx\nrebatch: true")
    (found,) = outcome.errors
    assert found.code == "TG154"
    assert "the MatMul node 'pins'" in found.message
    assert str(tmp_path / "m.onnx") in found.message, "the file that a person knows, and none in between"
    assert found.location.line == 5
    assert left_beside(tmp_path) == []


def test_a_fault_after_the_first_step_names_the_source(tmp_path):
    nodes = [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2], name="turn")]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [1, "S", 6])], [("y", TensorProto.FLOAT, ["S", 1, 6])])
    outcome = render(tmp_path, "source: m.onnx\nfreeze: true\nrebatch: true\nshapes: {x: [5, 6]}")
    assert {found.code for found in outcome.errors} == {"TG153"}
    assert all("tritongen-" not in found.message for found in outcome.errors)
    assert all(str(tmp_path / "m.onnx") in found.message for found in outcome.errors)


def test_sizes_are_written_into_the_file(tmp_path):
    sequence(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nfreeze: true\nshapes: {x: [5, 6]}")
    assert outcome.findings == ()
    assert [list(tensor.dims) for tensor in (*outcome.config.input, *outcome.config.output)] == [[5, 6], [5, 4]]
    assert [tensor.shape for tensor in (*read_onnx(served(tmp_path)).inputs, *read_onnx(served(tmp_path)).outputs)] == [("N", 5, 6), ("N", 5, 4)]


def test_without_batching_all_of_a_shape_is_written(tmp_path):
    sequence(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nfreeze: true\nbatching: none\nshapes: {x: [2, 5, 6]}")
    assert [list(tensor.dims) for tensor in (*outcome.config.input, *outcome.config.output)] == [[2, 5, 6], [2, 5, 4]]


@pytest.mark.parametrize(
    ("keys", "line", "message", "hint"),
    [
        ("freeze: true", 6, "shapes has none for x FP32 [N, S, 6]", "add shapes: {x: [..., 6]}, without the batch dimension"),
        ("shapes: {x: {min: [1, 6], opt: [5, 6], max: [9, 6]}}\nfreeze: true", 6, "'x' has a range, [1, 6] to [9, 6], and freeze (", "write x: [5, 6]"),
    ],
)
def test_freeze_needs_one_size(tmp_path, keys, line, message, hint):
    sequence(tmp_path / "m.onnx")
    (found,) = render(tmp_path, f"source: m.onnx\n{keys}").errors
    assert (found.code, found.location.line) == ("TG190", line)
    assert message in found.message
    assert hint in found.hint


def test_the_other_place_of_a_range_is_named(tmp_path):
    sequence(tmp_path / "m.onnx")
    top = 'triton: {release: "25.08"}\ndefaults: {freeze: true}'
    found = render(tmp_path, "source: m.onnx\nshapes: {x: {min: [1, 6], opt: [5, 6], max: [9, 6]}}", top=top).one("TG190")
    assert f"freeze ({tmp_path / 'spec.yaml'}:3:12)" in found.message


def test_keys_that_change_nothing_are_said_every_time(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    keys = "source: m.onnx\nfreeze: true\nrebatch: true\noptimize: {level: basic, hardware: mine}"
    for action in ("create", "keep"):
        outcome = render(tmp_path, keys)
        assert outcome.action == action
        assert outcome.codes == ["TG117"] * 3
        assert all(found.severity is Severity.WARNING for found in outcome.findings)
    top = 'triton: {release: "25.08"}\ndefaults: {freeze: true, rebatch: true}'
    assert [found.severity for found in render(tmp_path, "source: m.onnx", top=top).findings] == [Severity.ADVICE] * 2


def test_a_batch_axis_that_is_a_lie_is_refused_with_row_and_node(tmp_path):
    centred(tmp_path / "m.onnx")
    (found,) = render(tmp_path, "source: m.onnx").errors
    assert found.code == "TG162"
    assert "row 0 of output 'y'" in found.message
    assert "the cause is the ReduceMean node 'mean'" in found.message
    assert "prove: false" in found.hint
    assert "batching: none" in found.hint
    for keys in ("prove: false", "batching: none", "batching: {max: 1}"):
        assert render(tmp_path, f"source: m.onnx\n{keys}").errors == [], keys


def test_one_sentence_for_each_output_that_is_wrong(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[0]), helper.make_node("Sub", ["x", "m"], ["y"]), helper.make_node("Mul", ["x", "m"], ["z"])]
    shape = (TensorProto.FLOAT, ["N", 6])
    networks.save(tmp_path / "m.onnx", nodes, [("x", *shape)], [("y", *shape), ("z", *shape)])
    assert [found.code for found in render(tmp_path, "source: m.onnx").errors] == ["TG162", "TG162"]


def test_a_scale_over_the_whole_batch_is_a_warning(tmp_path):
    """What `onnxruntime.quantization.quantize_dynamic` makes: rows depend on each other by rounding."""
    weights = np.random.default_rng(0).integers(-90, 90, (16, 4)).astype(np.int8)
    stored = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.array(0, np.int8), "wz"),
        numpy_helper.from_array(np.array(0.01, np.float32), "ws"),
    ]
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="scale"),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["sw"]),
        helper.make_node("Mul", ["f", "sw"], ["y"]),
    ]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 16])], [("y", TensorProto.FLOAT, ["N", 4])], stored)
    outcome = render(tmp_path, "source: m.onnx")
    assert outcome.action == "create"
    found = outcome.one("TG162")
    assert found.severity is Severity.WARNING
    assert "the DynamicQuantizeLinear node 'scale', which takes one scale for the whole batch" in found.message


def test_a_guessed_size_is_no_evidence_against_a_model(tmp_path):
    """S must be 4, and nobody said so: with another size the rows run into each other."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    stored = [numpy_helper.from_array(np.array([-1, 4]), "s")]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", "S"])], [("y", TensorProto.FLOAT, ["N", 4])], stored)
    outcome = render(tmp_path, "source: m.onnx\nwarmup: none")
    assert outcome.errors == []
    found = outcome.one("TG163")
    assert found.severity is Severity.ADVICE
    assert "the size of x FP32 [N, S] is not known, and with a guess, with a batch of 1, output 'y' has the shape [8, 4]" in found.message
    demanded = render(tmp_path, "source: m.onnx\nwarmup: none\nprove: true").one("TG196")
    assert (demanded.severity, demanded.location.line) == (Severity.ERROR, 7)
    assert {"TG163", "TG196"}.isdisjoint(render(tmp_path, "source: m.onnx\nprove: true\nshapes: {x: [4]}").codes)


def test_a_rewrite_that_cannot_be_proved_is_refused_unless_that_is_asked_for(tmp_path, monkeypatch):
    flattening(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\nrebatch: true", prove_limit_bytes=0).one("TG196")
    assert "proofs are switched off (--prove-limit 0)" in found.message
    assert found.location.line == 6
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "onnxruntime" else find_spec(name, *more))
    assert "onnxruntime is not installed" in render(tmp_path, "source: m.onnx\nrebatch: true").one("TG196").message
    assert "onnxruntime is not installed" in render(tmp_path, "source: m.onnx\noptimize: offline").one("TG159").message
    unproved = render(tmp_path, "source: m.onnx\nrebatch: true\nprove: false")
    assert unproved.action == "create"
    assert unproved.one("TG163").severity is Severity.WARNING
    assert f"({tmp_path / 'spec.yaml'}:6:5)" in unproved.one("TG163").message


def test_a_proof_of_what_does_not_batch_is_an_idle_wish(tmp_path):
    networks.mlp(tmp_path / "m.onnx", batch=1)
    assert "the model does not batch" in render(tmp_path, "source: m.onnx\nprove: true").one("TG117").message


def test_a_batch_that_nobody_forms_is_not_made_variable(tmp_path):
    flattening(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\nrebatch: true\nbatching: none").one("TG117")
    assert (found.severity, found.location.line) == (Severity.WARNING, 6)
    assert f"batching ({tmp_path / 'spec.yaml'}:7:5) is off" in found.message
    assert served(tmp_path).read_bytes() == (tmp_path / "m.onnx").read_bytes()
    assert render(tmp_path, "source: m.onnx\nrebatch: true\nbatching: {max: 1}").findings == ()


def test_an_optimised_graph_answers_the_same_with_fewer_nodes(tmp_path):
    rng = np.random.default_rng(0)
    stored = [numpy_helper.from_array(rng.standard_normal((6, 4)).astype(np.float32), name) for name in ("a", "b")]
    nodes = [helper.make_node("Add", ["a", "b"], ["w"]), helper.make_node("Identity", ["x"], ["i"]), helper.make_node("MatMul", ["i", "w"], ["y"])]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 6])], [("y", TensorProto.FLOAT, ["N", 4])], stored)
    assert render(tmp_path, "source: m.onnx\noptimize: offline").findings == ()
    assert [node.op_type for node in onnx.load(served(tmp_path)).graph.node] == ["MatMul"]
    x = rng.standard_normal((3, 6)).astype(np.float32)
    np.testing.assert_allclose(answers(served(tmp_path), x=x)[0], answers(tmp_path / "m.onnx", x=x)[0], rtol=1e-5)


def test_the_stamp_says_from_what_and_how_with_which_libraries(tmp_path):
    sequence(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nfreeze: true\nshapes: {x: [5, 6]}\noptimize: {level: extended, tolerance: 1e-4}")
    (made,) = read_stamp(outcome.text).made.values()
    assert len(made.source) == 64
    for part in ('"freeze": {"x": [-1, 5, 6]}', '"level": "extended"', '"tolerance": 0.0001', f'"onnxruntime": "{onnxruntime.__version__}"', onnx.__version__):
        assert part in made.recipe


def test_a_name_cannot_break_out_of_the_stamp(tmp_path):
    name = 'x\ny: "é"'
    networks.save(
        tmp_path / "m.onnx", [helper.make_node("Neg", [name], ["y"])], [(name, TensorProto.FLOAT, ["N", "S"])], [("y", TensorProto.FLOAT, ["N", "S"])]
    )
    outcome = render(tmp_path, 'source: m.onnx\nfreeze: true\nshapes: {"x\\ny: \\"é\\"": [5]}')
    assert outcome.errors == []
    assert not read_stamp(outcome.text).edited
    assert render(tmp_path, 'source: m.onnx\nfreeze: true\nshapes: {"x\\ny: \\"é\\"": [5]}').action == "keep"


@pytest.mark.parametrize(
    "line",
    [
        "made: sha256:{sha} {digits} {{}}",
        "made: sha256:{sha} \u00b2 {{}}",
        "made: nothing",
        "file: sha256:{sha} {digits}/x",
        "kept: {digits}/model.plan",
        "kept: .",
    ],
)
def test_a_stamp_that_somebody_made_up_is_no_traceback(tmp_path, line):
    flattening(tmp_path / "m.onnx")
    keys = "source: m.onnx\nrebatch: true\nversion: auto"
    config = tmp_path / "model_repository/m/config.pbtxt"
    render(tmp_path, keys)
    config.write_text("# tritongen-" + line.format(sha="0" * 64, digits="9" * 5000) + "\n" + config.read_text())
    assert render(tmp_path, keys).errors == []


def test_samples_that_do_not_fit_are_said_once(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    assert render(tmp_path, "source: m.onnx\noptimize: offline\nsamples: {x: [1, 2], z: 3}").codes == ["TG103", "TG116"]


def test_the_graph_is_optimised_for_the_release(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\noptimize: {level: extended}")
    assert f'"onnxruntime": "{find_release("25.08").onnxruntime}"' in read_stamp(outcome.text).made[1].recipe


def test_other_libraries_are_said_to_be_the_reason(tmp_path, monkeypatch):
    networks.mlp(tmp_path / "m.onnx")
    render(tmp_path, "source: m.onnx\noptimize: offline")
    was = onnxruntime.__version__
    monkeypatch.setattr(onnxruntime, "__version__", "1.99.0")
    found = render(tmp_path, "source: m.onnx\noptimize: offline", apply=False).one("TG195")
    assert f"made with onnxruntime {was}, and is made again with onnxruntime 1.99.0" in found.message
    assert render(tmp_path, "source: m.onnx\noptimize: {level: extended}", apply=False).codes == [], "the recipe is another one: no wonder"


@pytest.mark.parametrize("harm", ["source", "result", "recipe"])
def test_a_found_file_is_made_again_where_anything_differs(tmp_path, harm):
    flattening(tmp_path / "m.onnx")
    render(tmp_path, "source: m.onnx\nrebatch: true")
    before, recipe = content(served(tmp_path)), "rebatch: true"
    if harm == "source":
        model = onnx.load(tmp_path / "m.onnx")
        model.graph.initializer[1].raw_data = bytes(reversed(model.graph.initializer[1].raw_data))
        onnx.save(model, tmp_path / "m.onnx")
    elif harm == "result":
        served(tmp_path).write_bytes(b"damaged")
    else:
        recipe = "rebatch: true\noptimize: offline"
    outcome = render(tmp_path, f"source: m.onnx\n{recipe}", force=True)
    assert outcome.action == "replace"
    assert (content(served(tmp_path)) == before) == (harm == "result")
    assert answers(served(tmp_path), x=X)[0].shape == (3, 4)


def test_numbered_versions_know_a_rewritten_file_again(tmp_path):
    flattening(tmp_path / "m.onnx")
    keys = "source: m.onnx\nrebatch: true\nversion: auto\nversions: {count: 2}"
    assert render(tmp_path, keys).action == "create"
    assert render(tmp_path, keys).action == "keep"
    flattening(tmp_path / "m.onnx", batch=1)
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.initializer[1].raw_data = bytes(reversed(model.graph.initializer[1].raw_data))
    onnx.save(model, tmp_path / "m.onnx")
    outcome = render(tmp_path, keys)
    assert outcome.action == "replace"
    assert sorted(read_stamp(outcome.text).made) == [1, 2]
    assert served(tmp_path, 1).read_bytes() != served(tmp_path, 2).read_bytes()
    assert render(tmp_path, keys).action == "keep"


def test_weights_in_files_of_their_own_go_along(tmp_path):
    model = onnx.load(flattening(tmp_path / "small.onnx"))
    (tmp_path / "src").mkdir()
    onnx.save_model(model, tmp_path / "src/m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=64)
    assert render(tmp_path, "source: src/m.onnx\nrebatch: true").findings == ()
    folder = served(tmp_path).parent
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "weights.bin"]
    assert (folder / "weights.bin").read_bytes() == (tmp_path / "src/weights.bin").read_bytes()
    assert (folder / "weights.bin").stat().st_nlink == 1, "no link to the source: an exporter rewrites in place"
    onnx.checker.check_model(str(served(tmp_path)))
    assert render(tmp_path, "source: src/m.onnx\nrebatch: true").action == "keep"


def test_the_source_of_a_plan_is_rewritten_too(tmp_path):
    flattening(tmp_path / "m.onnx")
    assert render(tmp_path, "source: m.onnx\nbackend: tensorrt\nrebatch: true").errors == []
    source = tmp_path / "model_repository.artifacts/m/model.onnx"
    assert answers(source, x=X)[0].shape == (3, 4)
    assert render(tmp_path, "source: m.onnx\nbackend: tensorrt\nrebatch: true").action == "keep"


@pytest.mark.parametrize(
    ("keys", "severity"),
    [("backend: tensorrt", Severity.ERROR), ("accelerator: cuda", Severity.WARNING), ("instances: {kind: gpu}", Severity.WARNING)],
)
def test_fused_operators_are_for_the_cpu(tmp_path, keys, severity):
    networks.mlp(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\noptimize: {{level: extended}}\n{keys}").one("TG191")
    assert (found.severity, found.location.line) == (severity, 6)
    assert "TG191" not in render(tmp_path, f"source: m.onnx\noptimize: offline\n{keys}").codes


def test_nothing_is_left_when_a_render_is_looked_at_only(tmp_path):
    flattening(tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text("version: 1\nmodels: [{name: m, source: m.onnx, rebatch: true}]\n")
    rendering = plan_render(tmp_path / "spec.yaml")
    assert len(left_beside(tmp_path)) == 1
    del rendering
    gc.collect()
    assert left_beside(tmp_path) == []
    with plan_render(tmp_path / "spec.yaml") as rendering:
        apply_plan(rendering.plan)
    assert served(tmp_path).is_file()


def test_a_check_of_a_folder_that_cannot_be_written_works(tmp_path, monkeypatch):
    flattening(tmp_path / "m.onnx")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert render(tmp_path, "source: m.onnx\nrebatch: true", apply=False).action == "create"
    assert left_beside(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_an_interrupt(tmp_path, number):
    networks.light("squeezenet", tmp_path)
    (tmp_path / "spec.yaml").write_text("version: 1\nmodels: [{name: m, source: squeezenet.onnx, rebatch: true, batching: {max: 64}, optimize: offline}]\n")
    program = "from tritongen.cli.entry import main; main()"
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "render", "spec.yaml"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 120
    while not left_beside(tmp_path) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said.decode().strip()) == (128 + number, "interrupted")
    assert left_beside(tmp_path) == []
    assert not (tmp_path / "model_repository").exists()


def test_init_proposes_rebatch_where_it_is_proved(tmp_path):
    flattening(tmp_path / "m.onnx")
    text, _ = starter_text([tmp_path / "m.onnx"], tmp_path)
    assert "\n    # rebatch: true\n    batching: none\n" in text
    (tmp_path / "spec.yaml").write_text(text.replace("    # rebatch: true\n    batching: none\n", "    rebatch: true\n"))
    with plan_render(tmp_path / "spec.yaml") as rendering:
        assert rendering.findings == ()
    networks.mlp(tmp_path / "four.onnx", batch=4)
    assert "rebatch: true" not in starter_text([tmp_path / "four.onnx"], tmp_path)[0], "a fixed batch of four rows is not the same thing"


def test_init_notices_a_batch_axis_that_is_a_lie(tmp_path):
    centred(tmp_path / "m.onnx")
    text, _ = starter_text([tmp_path / "m.onnx"], tmp_path)
    assert "The file states a batch axis, and it is none: with a batch of 2, row 0 of output 'y'" in text
    (tmp_path / "spec.yaml").write_text(text)
    with plan_render(tmp_path / "spec.yaml") as rendering:
        assert rendering.findings == ()


def test_every_fault_of_every_model_is_said(tmp_path):
    centred(tmp_path / "lie.onnx")
    sequence(tmp_path / "free.onnx")
    models = "[{name: a, source: lie.onnx}, {name: b, source: free.onnx, freeze: true}, {name: c, source: none.onnx}]"
    (tmp_path / "spec.yaml").write_text(f"version: 1\nmodels: {models}\n")
    with pytest.raises(InputError) as caught:
        plan_render(tmp_path / "spec.yaml")
    errors = [(found.model, found.code) for found in caught.value.diagnostics if found.severity is Severity.ERROR]
    assert errors == [("a", "TG162"), ("b", "TG190"), ("c", "TG020")]
    assert re.search(r"freeze writes fixed sizes", str(caught.value))
