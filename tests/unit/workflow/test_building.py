"""`tritongen build`: what is built and why, where it goes, and what is said where it cannot be."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import networks
import pytest

from tests.unit.workflow.building import RTX, Case
from tritongen.build import load_library
from tritongen.manifest import read_manifest
from tritongen.signature.plan import TENSORRT_RTX, read_plan_header


@pytest.fixture
def case(tmp_path, tritongen):
    return Case(tmp_path, tritongen)


class TestRtx:
    def test_a_plan_lies_beside_the_repository_with_its_manifest(self, case):
        result = case.build(*RTX)
        assert result.code == 0
        assert "TensorRT-RTX, which Triton cannot load" in result.out
        assert read_plan_header(case.rtx.read_bytes()).kind == TENSORRT_RTX
        manifest = read_manifest((case.artifacts / "1" / "model.rtx.plan.manifest.json").read_text())
        assert manifest.builder.kind == TENSORRT_RTX
        assert not list(case.root.rglob("*.plan"))

    def test_a_second_run_builds_nothing(self, case):
        case.build(*RTX)
        before = case.rtx.stat().st_mtime_ns
        assert case.states(*RTX) == [("good", [])]
        assert case.rtx.stat().st_mtime_ns == before

    def test_how_the_repository_was_written_is_said(self, case, monkeypatch):
        monkeypatch.setattr("tritongen.repository.placing.exchange", lambda *_: False)
        words = "m: this filesystem cannot exchange two folders in one step; the model was absent for a moment"
        for batch, form in ((8, "text"), (4, "json")):
            case.call("render", case.folder / "spec.yaml")
            case.spec(f", tensorrt: {{profiles: [{{batch: {batch}}}]}}, queue: {{max_queue_size: {batch}}}")
            result = case.build(*RTX, "--format", form)
            assert words in (result.err if form == "text" else json.loads(result.out)["notes"])

    def test_a_rendered_repository_needs_no_spec(self, case):
        case.call("render", case.folder / "spec.yaml")
        (case.folder / "spec.yaml").unlink()
        assert case.states(*RTX, target="model_repository") == [("built", ["is not there"])]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda case: case.spec(", tensorrt: {build: {builder_optimization_level: 1}}"), "optimization level"),
            (lambda case: case.spec(", tensorrt: {profiles: [{batch: 4}]}"), "other sizes in profile 0"),
            (lambda case: networks.mlp(case.folder / "m.onnx", seed=9), "from another model.onnx"),
            (lambda case: case.rtx.write_bytes(case.rtx.read_bytes() + b"!"), "was changed since it was built"),
            (lambda case: case.rtx.unlink(), "is not there"),
            (lambda case: case.rtx.with_name("model.rtx.plan.manifest.json").unlink(), "has no manifest"),
            (lambda case: case.rtx.with_name("model.rtx.plan.manifest.json").write_text("{}"), "has a manifest that cannot be used"),
        ],
    )
    def test_what_makes_a_plan_stale_is_said_and_it_is_built_again(self, case, change, reason):
        case.build(*RTX)
        change(case)
        ((state, reasons),) = case.states(*RTX)
        assert state == "built"
        assert any(reason in text for text in reasons)
        assert case.states(*RTX) == [("good", [])]

    def test_other_gpus_are_another_plan(self, case):
        case.build(*RTX)
        assert case.states(*RTX, "--compute-capability", "8.6", "--compute-capability", "12.0") == [
            ("built", ["was built for all GPUs, and 8.6, 12.0 are asked for"])
        ]
        again = ("--compute-capability", "12.0", "--compute-capability", "8.6", "--compute-capability", "12.0")
        assert case.states(*RTX, *again) == [("good", [])]

    def test_another_version_of_the_library_makes_it_stale(self, case, monkeypatch):
        case.build(*RTX)
        here = load_library(TENSORRT_RTX)
        monkeypatch.setattr("tritongen.workflow.building.installed_version", lambda kind: "1.8.0.1")
        ((state, reasons),) = case.states(*RTX, "--dry-run")
        assert (state, reasons) == ("wanted", [f"was built with TensorRT-RTX {here.version}, and what loads it has 1.8.0.1"])
        assert case.states("--dry-run") == [("wanted", ["is not there"])]

    def test_a_precision_that_it_takes_from_the_file_alone_is_said(self, case):
        case.spec(", precision: int8")
        result = case.build(*RTX)
        assert result.code == 0
        assert "precision int8 has no effect: TensorRT-RTX" in result.out

    def test_the_gpus_of_the_spec_are_those_of_the_plan(self, case):
        case.spec(', tensorrt: {build: {compute_capabilities: ["8.6", "8.9"]}}')
        case.build(*RTX)
        manifest = read_manifest((case.artifacts / "1" / "model.rtx.plan.manifest.json").read_text())
        assert manifest.builder.compute_capability == "8.6, 8.9"

    def test_force_builds_what_is_good(self, case):
        case.build(*RTX)
        assert case.states(*RTX, "--force") == [("built", ["is built again, since --force is given"])]


def test_each_version_has_its_own_plan(case):
    networks.mlp(case.folder / "new.onnx", seed=9)
    (case.folder / "spec.yaml").write_text("version: 1\nmodels:\n- {name: m, sources: {1: m.onnx, 2: new.onnx}, backend: tensorrt, versions: {policy: all}}\n")
    assert case.states(*RTX) == [("built", ["is not there"])] * 2
    plans = [case.artifacts / version / "model.rtx.plan" for version in ("1", "2")]
    assert plans[0].read_bytes() != plans[1].read_bytes()
    networks.mlp(case.folder / "new.onnx", seed=10)
    assert [state for state, _ in case.states(*RTX)] == ["good", "built"]


class TestDryRun:
    def test_it_writes_nothing_and_needs_no_library(self, case):
        before = sorted(case.folder.rglob("*"))
        result = case.build("--dry-run")
        assert result.code == 1
        assert "would build" in result.out
        assert "the plan is not there" in result.out
        assert sorted(case.folder.rglob("*")) == before

    def test_it_is_content_where_nothing_is_to_be_built(self, case):
        case.build(*RTX)
        assert case.build(*RTX, "--dry-run").code == 0

    @pytest.mark.parametrize("where", ["model_repository/m/config.pbtxt", "model_repository.artifacts/build_plans.sh"])
    def test_it_refuses_what_the_build_itself_refuses(self, case, where):
        case.call("render", case.folder / "spec.yaml")
        with (case.folder / where).open("a") as file:
            file.write("# mine\n")
        case.spec(more=", tensorrt: {build: {builder_optimization_level: 1}}")
        refused, tried = (case.build(*RTX, *options) for options in ((), ("--dry-run",)))
        assert (refused.code, refused.out, refused.err) == (tried.code, tried.out, tried.err)
        assert tried.code == 2
        assert "TG043" in tried.err
        assert "overwrite it with `tritongen render --force`" in tried.err, "under build, --force is about plans"
        assert case.call("render", case.folder / "spec.yaml", "--force").code == 0
        assert case.build(*RTX, "--dry-run").code == 1


class TestWhatCannotBeBuilt:
    def test_the_other_models_are_built(self, case):
        (case.folder / "det.onnx").write_bytes(determinant())
        case.spec(others="- {name: det, source: det.onnx, backend: tensorrt, batching: none}\n")
        result = case.build(*RTX)
        assert result.code == 2
        assert case.rtx.is_file()
        assert "operator Det" in result.err
        assert list((case.folder / "model_repository.artifacts/det").rglob("*.plan*")) == []

    def test_without_tensorrt_it_is_said_how_to_get_it(self, case):
        result = case.build()
        assert result.code == 3
        assert "pip install 'tritongen[tensorrt]'" in result.err
        assert "build_plans.sh" in result.err

    def test_a_misspelt_model(self, case):
        result = case.build(*RTX, "--model", "mm")
        assert result.code == 2
        assert "did you mean 'm'?" in result.err

    def test_models_are_chosen(self, case):
        case.spec(others="- {name: other, source: m.onnx, backend: tensorrt}\n")
        assert len(case.states(*RTX, "--model", "other")) == 1
        assert not case.rtx.exists()

    def test_capabilities_are_for_rtx(self, case):
        result = case.build("--compute-capability", "8.6")
        assert result.code == 2
        assert "are for tensorrt-rtx" in result.err

    def test_a_capability_that_is_none(self, case):
        result = case.build(*RTX, "--compute-capability", "86")
        assert result.code == 2
        assert "write it as 8.6" in result.err

    def test_a_capability_that_the_library_does_not_know_is_said_once_at_the_option(self, case):
        case.spec(others="- {name: other, source: m.onnx, backend: tensorrt}\n")
        result = case.build(*RTX, "--compute-capability", "9.0", "--compute-capability", "8.6")
        assert result.code == 2
        assert result.err.count("TG093") == 1
        assert "--compute-capability: TensorRT-RTX" in result.err
        assert "builds nothing for compute capability 9.0" in result.err
        assert "it knows 7.5, 8.0, 8.6" in result.err
        assert not case.rtx.exists()

    def test_and_one_of_the_spec_at_each_model_that_names_it(self, case):
        case.spec(', tensorrt: {build: {compute_capabilities: ["9.0"]}}')
        result = case.build(*RTX)
        assert result.code == 2
        assert "(model m): TensorRT-RTX" in result.err
        assert "9.0, which tensorrt.build.compute_capabilities names" in result.err
        assert "name some of these with --compute-capability" in result.err
        assert case.build(*RTX, "--compute-capability", "8.9").code == 0

    def test_no_model_with_a_plan(self, case):
        (case.folder / "spec.yaml").write_text("version: 1\nmodels:\n- {name: m, source: m.onnx}\n")
        result = case.build(*RTX)
        assert result.code == 0
        assert "there is no plan to build" in result.out

    def test_a_folder_that_is_no_repository(self, case):
        (case.folder / "empty").mkdir()
        result = case.build(*RTX, target="empty")
        assert result.code == 2
        assert "TG095" in result.err

    def test_recipes_that_were_damaged(self, case):
        case.call("render", case.folder / "spec.yaml")
        (case.artifacts / "recipes.json").write_text('{"format": 9, "recipes": []}')
        result = case.build(*RTX, target="model_repository")
        assert result.code == 2
        assert "format 9" in result.err

    def test_an_onnx_file_that_was_changed_since_the_render(self, case):
        case.call("render", case.folder / "spec.yaml")
        networks.mlp(case.artifacts / "model.onnx", seed=9)
        result = case.build(*RTX, target="model_repository")
        assert result.code == 2
        assert "model.onnx is not the file that the recipe of the plan was made for" in result.err
        assert "render the spec again" in result.err
        assert not case.rtx.exists()

    @pytest.mark.parametrize("options", [(), ("--dry-run",)])
    def test_one_whose_plan_was_built_before(self, case, options):
        case.build(*RTX)
        networks.mlp(case.artifacts / "model.onnx", seed=9)
        result = case.build(*RTX, *options, target="model_repository")
        assert result.code == 2
        assert "model.onnx is not the file that the recipe of the plan was made for" in result.err
        (case.artifacts / "model.onnx").unlink()
        result = case.build(*RTX, *options, target="model_repository")
        assert result.code == 2
        assert "model.onnx is not there, and the plan is built from it" in result.err
        assert "render the spec again" in result.err

    def test_a_model_that_has_no_plan_any_more(self, case):
        case.build(*RTX)
        recipes = case.artifacts / "recipes.json"
        edited = recipes.read_text() + " "
        recipes.write_text(edited)  # edited by hand, so that the next render leaves it
        case.call("render", case.folder / "spec.yaml", "--force")
        recipes.write_text(edited)
        (case.folder / "spec.yaml").write_text("version: 1\nmodels:\n- {name: m, source: m.onnx}\n")
        assert case.call("render", case.folder / "spec.yaml").code == 0
        assert recipes.exists()
        result = case.build(*RTX, target="model_repository")
        assert (result.code, "there is no plan to build" in result.out) == (0, True)

    def test_recipes_of_other_plans_than_the_config_has(self, case):
        case.call("render", case.folder / "spec.yaml")
        recipes = case.artifacts / "recipes.json"
        recipes.write_text(recipes.read_text().replace('"version": 1', '"version": 7'))
        result = case.build(*RTX, target="model_repository")
        assert result.code == 2
        assert "name different plans: 1/model.plan, 7/model.plan" in result.err

    @pytest.mark.parametrize(
        ("was", "now", "words"),
        [
            ('"name": "model.plan"', '"name": "../../model.plan"', "is no name of a file"),
            ('"version": 1', '"version": -1', "greater than or equal to 1"),
            ('"release": "25.08"', '"release": "newest"', "recipes.0.release"),
            ('"hardware_compatibility": "none"', '"hardware_compatibility": "all"', "recipes.0.hardware_compatibility"),
            ('"optimization_level": null', '"optimization_level": 99', "recipes.0.optimization_level"),
            ('"onnx": "model.onnx"', '"onnx": "/etc/passwd"', "leads out of the model's artifacts folder"),
            ('"model": "m"', '"model": "other"', "it has recipes of 'other'"),
        ],
    )
    def test_recipes_that_were_edited_by_hand(self, case, was, now, words):
        case.call("render", case.folder / "spec.yaml")
        recipes = case.artifacts / "recipes.json"
        assert was in recipes.read_text()
        recipes.write_text(recipes.read_text().replace(was, now))
        result = case.build(*RTX, target="model_repository")
        assert result.code == 2
        assert "TG095" in result.err
        assert words in result.err
        assert "Traceback" not in result.err

    def test_a_graph_that_hands_its_input_on(self, case):
        from onnx import TensorProto, helper

        nodes, side = [helper.make_node("Tanh", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N", 8])]
        networks.save(case.folder / "m.onnx", nodes, side, [("y", TensorProto.FLOAT, ["N", 8]), *side])
        result = case.build(*RTX)
        assert result.code == 2
        assert result.err.count("TG091") == 1
        assert "input 'x' of the ONNX file is one of its outputs, too" in result.err
        assert "put an Identity node between" in result.err

    def test_a_model_in_place_of_a_spec(self, case):
        result = case.build(*RTX, target="m.onnx")
        assert result.code == 2
        assert "tritongen init" in result.err

    @pytest.mark.parametrize("name", ["model.rtx.plan", "model.rtx.plan.manifest.json"])
    def test_a_folder_in_the_place_of_a_file_is_said_before_anything_is_built(self, case, name):
        case.call("render", case.folder / "spec.yaml")
        (case.artifacts / "1" / name).mkdir(parents=True)
        for options in (RTX, (*RTX, "--dry-run")):
            result = case.build(*options, target="model_repository")
            assert result.code == 2
            assert f"{name} is a folder, and a file is to be written there" in result.err
        assert "building" not in result.err

    def test_a_place_that_cannot_be_written(self, case):
        case.call("render", case.folder / "spec.yaml")
        (case.artifacts / "1").write_text("a file where a folder is needed")
        result = case.build(*RTX, target="model_repository")
        assert result.code == 2
        assert "TG096" in result.err
        assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("options", "code", "words"), [((), 3, "pip install 'tritongen[tensorrt]'"), ((*RTX, "--model", "mm"), 2, "did you mean 'm'?"), ((), 2, "'batchin'")]
)
def test_json_is_one_object_whatever_the_exit_code(case, options, code, words):
    good = json.loads(case.build(*RTX, "--format", "json").out)
    if "batchin" in words:
        case.spec(more=", batchin: 3")
    result = case.build(*options, "--format", "json")
    found = json.loads(result.out)
    assert (result.code, found["error"]["exit_code"], found["plans"]) == (code, code, [])
    assert words in json.dumps(found, ensure_ascii=False)
    assert words in result.err
    assert found.keys() == good.keys()
    assert good["error"] is None


def determinant() -> bytes:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"], name="det")], "g", [value("x", TensorProto.FLOAT, (1, 4, 4))], [value("y", TensorProto.FLOAT, (1,))]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def started(folder: Path, stderr: int) -> subprocess.Popen[str]:
    """A build of a real network as a command of its own."""
    networks.light("squeezenet", folder)
    (folder / "spec.yaml").write_text("version: 1\nmodels:\n- {name: m, source: squeezenet.onnx, backend: tensorrt, batching: none}\n")
    command = [sys.executable, "-m", "tritongen", "build", "spec.yaml", "--with", "tensorrt-rtx", "--prove-limit", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "200"}
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr, text=True, env=environment)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_no_half_file(times, tmp_path):
    with started(tmp_path, subprocess.PIPE) as process:
        assert process.stderr is not None
        before = "".join(itertools.takewhile(lambda line: not line.startswith("building"), process.stderr))
        for _ in range(times):
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        # A second one that comes when all has been put away ends the process as any other; a shell says 130 then, too.
        assert process.wait(60) in (130, *[-signal.SIGINT] * (times > 1)), before + said
    assert "Traceback" not in said
    assert list(tmp_path.rglob("*.plan*")) == []


def test_a_terminal_shows_a_bar_and_has_its_cursor_again_after_ctrl_c(tmp_path):
    ours, theirs = os.openpty()
    with started(tmp_path, theirs) as process, os.fdopen(ours, "rb", buffering=0) as terminal:
        os.close(theirs)
        shown = b""
        while b"Building engine" not in shown:
            shown += terminal.read(4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # how Linux says that nobody writes to a terminal any more
            while more := terminal.read(4096):
                shown += more
        assert process.wait(60) == 130, shown
    hidden, _, after = shown.rpartition(b"\x1b[?25l")
    assert hidden
    assert b"\x1b[?25h" in after
    assert b"m/1/model.rtx.plan: Building engine" in shown
