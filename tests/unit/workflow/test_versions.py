"""Several versions of one model, from several sources: one config, a folder for each."""

from __future__ import annotations

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.unit.workflow.rewriting import ROOT, centred, flattening, render, served
from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.repository import apply_plan
from tritongen.workflow.rendering import plan_render

BOTH = "sources: {1: a.onnx, 3: b.onnx}"


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate("ab"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)
    return tmp_path


def files(folder):
    return sorted(path.relative_to(folder / ROOT / "m").as_posix() for path in (folder / ROOT / "m").rglob("*") if path.is_file())


def test_each_source_has_a_folder_and_one_config_serves_both(folder):
    outcome = render(folder, f"{BOTH}\nversions: {{policy: all}}")
    assert outcome.findings == ()
    assert outcome.config.version_policy.WhichOneof("policy_choice") == "all"
    assert files(folder) == ["1/model.onnx", "3/model.onnx", "config.pbtxt"]
    assert [served(folder, number).read_bytes() for number in (1, 3)] == [(folder / f"{name}.onnx").read_bytes() for name in "ab"]
    assert render(folder, f"{BOTH}\nversions: {{policy: all}}").action == "keep"


@pytest.mark.parametrize(("policy", "kept"), [("", [2]), ("versions: {count: 2}", [1, 2]), ("versions: {policy: all}", [1, 2])])
def test_auto_keeps_the_earlier_versions_that_are_served(folder, policy, kept):
    for name in "ab":
        outcome = render(folder, f"source: {name}.onnx\nversion: auto\n{policy}")
        assert outcome.findings == ()
    assert files(folder) == [*(f"{number}/model.onnx" for number in kept), "config.pbtxt"]


def test_a_higher_version_of_somebody_else_is_said(folder):
    render(folder, "source: a.onnx\nversion: 1")
    theirs = folder / ROOT / "m/7/model.onnx"
    theirs.parent.mkdir()
    theirs.write_bytes((folder / "b.onnx").read_bytes())
    found = render(folder, "source: a.onnx\nversion: 1").one("TG197")
    assert found.severity is Severity.WARNING
    assert "holds version 7, which tritongen did not make" in found.message
    assert render(folder, "source: a.onnx\nversions: {policy: all}").findings == ()
    assert theirs.is_file()


@pytest.mark.parametrize("version", ["1", "auto"])
def test_an_empty_version_folder_is_nobodys_and_goes(folder, version):
    """Triton would take it for the newest version, and refuse the model."""
    render(folder, f"source: a.onnx\nversion: {version}")
    (folder / ROOT / "m/7/nothing").mkdir(parents=True)
    outcome = render(folder, f"source: a.onnx\nversion: {version}")
    assert (outcome.action, outcome.findings) == ("replace", ())
    assert sorted(path.name for path in (folder / ROOT / "m").iterdir()) == ["1", "config.pbtxt"]
    assert render(folder, f"source: a.onnx\nversion: {version}").action == "keep"


def test_a_link_to_an_empty_folder_is_somebodys(folder):
    render(folder, "source: a.onnx\nversion: 1")
    (folder / "elsewhere").mkdir()
    (folder / ROOT / "m/7").symlink_to(folder / "elsewhere")
    outcome = render(folder, "source: a.onnx\nversion: 1")
    assert outcome.action == "keep"
    assert outcome.one("TG197").consequence.endswith("where that has no model file, it refuses the model")


@pytest.mark.parametrize("backend", ["", "backend: tensorrt\ninstances: [{kind: gpu}]"])
def test_the_version_folder_of_a_plan_may_be_empty(folder, backend):
    render(folder, f"source: a.onnx\n{backend}")
    assert render(folder, f"source: a.onnx\n{backend}").action == "keep"


def test_auto_counts_on_from_a_version_of_somebody_else(folder):
    render(folder, "source: a.onnx\nversion: auto")
    theirs = folder / ROOT / "m/5/model.onnx"
    theirs.parent.mkdir()
    theirs.write_bytes(b"theirs")
    outcome = render(folder, "source: b.onnx\nversion: auto")
    assert (outcome.action, outcome.findings) == ("replace", ())
    assert files(folder) == ["5/model.onnx", "6/model.onnx", "config.pbtxt"]
    assert theirs.read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("theirs", "version", "why"),
    [
        ("9223372036854775808", "auto", "holds '9223372036854775808', which tritongen did not make, and which is a number beyond 64 bits"),
        ("9" * 40, "1", f"holds '{'9' * 40}', which tritongen did not make, and which is a number beyond 64 bits"),
        ("9223372036854775807", "auto", "counts on from 9223372036854775807, a version folder that tritongen did not make, and there is no higher number"),
    ],
)
def test_a_number_that_triton_cannot_read_is_refused_and_the_folder_named(folder, theirs, version, why):
    there = folder / ROOT / "m" / theirs / "model.onnx"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"theirs")
    (found,) = render(folder, f"source: a.onnx\nversion: {version}").errors
    assert (found.code, found.hint.startswith(f"move {theirs} away")) == ("TG242", True)
    assert why in found.message
    assert files(folder) == [f"{theirs}/model.onnx"]


@pytest.mark.parametrize("change", ["version: 2", "batching: none\nfreeze: true\nshapes: {x: [2, 8]}"])
def test_a_source_that_the_render_would_take_away_is_refused(folder, change):
    render(folder, "source: a.onnx\nversion: 1")
    inside = served(folder)
    before = inside.read_bytes()
    found = render(folder, f"source: {ROOT}/m/1/model.onnx\n{change}").one("TG052")
    assert found.severity is Severity.ERROR
    assert f"the source {inside} lies in the repository" in found.message
    assert (found.location.line, inside.read_bytes()) == (5, before)
    assert render(folder, f"source: {ROOT}/m/1/model.onnx\nversion: 1").action == "keep", "nothing is taken from it"


def test_a_source_in_a_model_that_is_pruned_is_refused(folder):
    render(folder, "source: a.onnx")
    spec = folder / "other.yaml"
    spec.write_text(f"version: 1\nmodels:\n  - {{name: n, source: {ROOT}/m/1/model.onnx}}\n")
    with pytest.raises(InputError, match="TG052"):
        plan_render(spec, prune=True)
    with plan_render(spec) as rendering:
        apply_plan(rendering.plan)
    assert served(folder).is_file()


def test_a_source_that_somebody_put_into_the_repository_stays_there(folder):
    inside = folder / ROOT / "m/3/theirs.onnx"
    inside.parent.mkdir(parents=True)
    (folder / "a.onnx").rename(inside)
    made = [render(folder, f"source: {ROOT}/m/3/theirs.onnx\nversion: 4", force=True).action for _ in range(2)]
    assert made == ["replace", "keep"]
    assert inside.is_file()


def test_a_source_that_leaves_the_spec_leaves_the_repository(folder):
    render(folder, f"{BOTH}\nversions: {{policy: all}}")
    outcome = render(folder, "sources: {3: b.onnx}")
    assert (outcome.action, outcome.findings) == ("replace", ())
    assert files(folder) == ["3/model.onnx", "config.pbtxt"]


@pytest.mark.parametrize(
    ("policy", "left"),
    [("", "version 1 is"), ("versions: {policy: specific, versions: [1]}", "version 3 is"), ("versions: {count: 2}", ""), ("versions: {policy: all}", "")],
)
def test_versions_that_are_not_served_are_said(folder, policy, left):
    outcome = render(folder, f"{BOTH}\n{policy}")
    assert outcome.codes == (["TG193"] if left else [])
    if left:
        found = outcome.one("TG193")
        assert found.severity is Severity.ADVICE
        assert found.message.startswith(f"{left} written and not served")


def test_a_version_that_is_listed_and_not_there_is_refused_with_both_places(folder):
    (found,) = render(folder, f"versions: {{policy: specific, versions: [1, 2]}}\n{BOTH}").errors
    assert (found.code, found.location.line, found.location.column) == ("TG109", 5, 48)
    assert f"versions lists 2, and sources ({folder / 'spec.yaml'}:6:5) has no such version" in found.message
    assert "1, 3" in found.hint


def test_sources_number_their_files_themselves(folder):
    (found,) = render(folder, f"{BOTH}\nversion: 4\nversions: {{policy: all}}").errors
    assert (found.code, found.location.line) == ("TG194", 6)
    assert f"({folder / 'spec.yaml'}:5:5)" in found.message
    top = 'triton: {release: "25.08"}\ndefaults: {version: auto, versions: {policy: all}}'
    inherited = render(folder, BOTH, top=top)
    assert [(each.code, each.severity) for each in inherited.findings] == [("TG117", Severity.ADVICE)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: networks.mlp(path, outputs=5), "output y FP32 [N, 5], and in the newest y FP32 [N, 4]"),
        (lambda path: networks.mlp(path, batch=1), "input x FP32 [1, 8], and in the newest x FP32 [N, 8]"),
        (lambda path: renamed(path, "z", TensorProto.FLOAT), "it has the output 'z', which the newest has not"),
        (lambda path: renamed(path, "z", TensorProto.FLOAT), "it has no output 'y'"),
        (lambda path: renamed(path, "y", TensorProto.DOUBLE), "input x FP64 [N, 8], and in the newest x FP32 [N, 8]"),
    ],
)
def test_versions_with_other_interfaces_are_refused_with_both_files(folder, make, message):
    make(folder / "a.onnx")
    found = [each for each in render(folder, f"{BOTH}\nversions: {{policy: all}}").errors if message in each.message]
    assert [each.code for each in found] == ["TG192"]
    assert found[0].message.startswith(f"{folder / 'a.onnx'} (version 1) differs from {folder / 'b.onnx'} (version 3): ")
    assert (found[0].location.line, found[0].location.column) == (5, 15)


def renamed(path, output, kind):
    networks.save(path, [helper.make_node("Neg", ["x"], [output])], [("x", kind, ["N", 8])], [(output, kind, ["N", 8])])


def test_another_name_for_the_batch_is_no_difference(folder):
    networks.mlp(folder / "a.onnx", batch="rows", seed=1)
    assert render(folder, f"{BOTH}\nversions: {{policy: all}}").findings == ()


def test_every_version_is_proved(tmp_path):
    shape = [("x", TensorProto.FLOAT, ["N", 6])], [("y", TensorProto.FLOAT, ["N", 6])]
    networks.save(tmp_path / "good.onnx", [helper.make_node("Neg", ["x"], ["y"])], *shape)
    centred(tmp_path / "lie.onnx")
    (found,) = render(tmp_path, "sources: {1: lie.onnx, 2: good.onnx}\nversions: {policy: all}").errors
    assert found.code == "TG162"
    assert found.message.startswith("version 1: with a batch of 2, row 0 of output 'y'")


def test_a_lie_of_one_version_does_not_hide_anothers(tmp_path):
    for name in ("a", "b"):
        centred(tmp_path / f"{name}.onnx")
    found = render(tmp_path, "sources: {1: a.onnx, 2: b.onnx}\nversions: {policy: all}").errors
    assert [(each.code, each.message[:11]) for each in found] == [("TG162", "version 1: "), ("TG162", "version 2: ")]


def test_a_rewrite_concerns_each_version_that_needs_it(folder):
    networks.mlp(folder / "a.onnx", batch=1, seed=5)
    outcome = render(folder, f"{BOTH}\nversions: {{policy: all}}\nrebatch: true")
    assert outcome.findings == ()
    assert served(folder, 3).read_bytes() == (folder / "b.onnx").read_bytes()
    assert onnx.load(served(folder, 1)).graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert render(folder, f"{BOTH}\nversions: {{policy: all}}\nrebatch: true").action == "keep"


def test_every_file_that_cannot_be_used_is_said_at_its_place(folder):
    (folder / "a.onnx").write_bytes(b"no model")
    (folder / "b.onnx").unlink()
    found = render(folder, BOTH).errors
    assert [(each.code, each.location.column) for each in found] == [("TG025", 15), ("TG020", 26)]


def test_weights_of_versions_do_not_meet(tmp_path):
    for seed, name in enumerate("ab"):
        model = onnx.load(networks.mlp(tmp_path / "whole.onnx", seed=seed))
        (tmp_path / name).mkdir()
        onnx.save_model(model, tmp_path / name / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=16)
    render(tmp_path, "sources: {1: a/m.onnx, 2: b/m.onnx}\nversions: {policy: all}")
    assert files(tmp_path) == ["1/model.onnx", "1/weights.bin", "2/model.onnx", "2/weights.bin", "config.pbtxt"]
    assert (tmp_path / ROOT / "m/1/weights.bin").read_bytes() == (tmp_path / "a/weights.bin").read_bytes()
    assert (tmp_path / ROOT / "m/2/weights.bin").read_bytes() == (tmp_path / "b/weights.bin").read_bytes()


def test_plans_of_versions_have_a_source_each(folder):
    outcome = render(folder, f"{BOTH}\nversions: {{policy: all}}\nbackend: tensorrt")
    assert outcome.errors == []
    artifacts = folder / f"{ROOT}.artifacts/m"
    assert [(artifacts / str(number) / "model.onnx").read_bytes() for number in (1, 3)] == [(folder / f"{name}.onnx").read_bytes() for name in "ab"]
    assert render(folder, f"{BOTH}\nversions: {{policy: all}}\nbackend: tensorrt").action == "keep"


def test_the_folder_of_caches_is_for_all_files_together_and_holds_no_engines(folder):
    def parameters():
        outcome = render(folder, f"{BOTH}\nversions: {{policy: all}}\naccelerator: tensorrt")
        assert "versions 1, 3 are served" in outcome.one("TG129").message
        return outcome.config.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters

    before = parameters()
    networks.mlp(folder / "a.onnx", seed=9)
    after = parameters()
    assert before["trt_timing_cache_path"] != after["trt_timing_cache_path"]
    assert not {"trt_engine_cache_enable", "trt_engine_cache_path"} & {*before, *after}


def test_warmup_is_proved_with_every_version(tmp_path):
    shape = [("x", TensorProto.FLOAT, ["N", 3, 4])], [("y", TensorProto.FLOAT, ["N", 4])]
    for name, columns in (("a", 12), ("b", 24)):
        stored = [onnx.numpy_helper.from_array(np.array([-1, columns]), "s"), onnx.numpy_helper.from_array(np.ones((columns, 4), np.float32), "w")]
        nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
        networks.save(tmp_path / f"{name}.onnx", nodes, *shape, stored)
    found = render(tmp_path, "sources: {1: a.onnx, 2: b.onnx}\nversions: {policy: all}").errors
    assert {each.code for each in found} == {"TG142", "TG145"}
    assert all(each.message.startswith("version 2: ") for each in found)


def test_versions_of_which_one_fixes_what_the_file_leaves_open_differ(tmp_path):
    flattening(tmp_path / "b.onnx", batch="N")
    shape = [("x", TensorProto.FLOAT, ["N", 3, 4])], [("y", TensorProto.FLOAT, ["N", 4])]
    stored = [onnx.numpy_helper.from_array(np.array([-1, 12]), "s"), onnx.numpy_helper.from_array(np.ones((12, 4), np.float32), "w")]
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    networks.save(tmp_path / "a.onnx", nodes, *shape, stored)
    (found,) = render(tmp_path, "sources: {1: a.onnx, 2: b.onnx}\nversions: {policy: all}").errors
    assert found.code == "TG192"
    assert "[1, 4]" in found.message
