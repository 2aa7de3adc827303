"""The command line as a user meets it: what is printed, which exit code, what is left on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import networks
import pytest
from onnx import TensorProto, helper


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_render_writes_and_a_second_run_changes_nothing(project, tritongen):
    first = tritongen("render", project / "spec.yaml")
    assert (first.code, first.err) == (0, "")
    assert "created" in first.out
    before = {path: path.stat().st_mtime_ns for path in (project / "model_repository").rglob("*")}
    second = tritongen("render", project / "spec.yaml")
    assert second.code == 0
    assert "unchanged" in second.out
    assert {path: path.stat().st_mtime_ns for path in (project / "model_repository").rglob("*")} == before


def test_dry_run_and_check_write_nothing(project, tritongen):
    before = files(project)
    assert tritongen("render", project / "spec.yaml", "--dry-run").code == 0
    check = tritongen("render", project / "spec.yaml", "--check")
    assert check.code == 1
    assert "create" in check.out
    assert files(project) == before
    tritongen("render", project / "spec.yaml")
    assert tritongen("render", project / "spec.yaml", "--check").code == 0


def test_another_folder_can_be_asked_for(project, tritongen):
    assert tritongen("render", project / "spec.yaml", "-o", project / "else/where").code == 0
    assert (project / "else/where/mlp/1/model.onnx").is_file()
    assert not (project / "model_repository").exists()


def test_a_hand_edit_stops_render_until_force(project, tritongen):
    tritongen("render", project / "spec.yaml")
    config = project / "model_repository/mlp/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: 7"))
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("500us", "1ms"))
    stopped = tritongen("render", project / "spec.yaml")
    assert stopped.code == 2
    assert "edited by hand" in stopped.err
    assert "max_batch_size: 7" in config.read_text()
    assert tritongen("render", project / "spec.yaml", "--dry-run").code == 1
    assert tritongen("render", project / "spec.yaml", "--force").code == 0
    assert "max_batch_size: 8" in config.read_text()


def test_a_model_that_left_the_spec_is_said_and_left(project, tritongen):
    tritongen("render", project / "spec.yaml")
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("name: mlp", "name: other"))
    result = tritongen("render", project / "spec.yaml")
    assert "orphan" in result.out
    assert (project / "model_repository/mlp").is_dir()
    assert tritongen("render", project / "spec.yaml", "--check").code == 0


def test_strict_makes_a_warning_an_error(project, tritongen):
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("25.08", "31.01"))
    assert tritongen("render", project / "spec.yaml", "--dry-run").code == 0
    strict = tritongen("render", project / "spec.yaml", "--strict")
    assert strict.code == 2
    assert "TG115" in strict.err
    assert not (project / "model_repository").exists()


def test_a_mistake_in_the_spec_is_shown_where_it_is(project, tritongen):
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("batching", "bathcing"))
    result = tritongen("render", project / "spec.yaml")
    assert result.code == 2
    assert "spec.yaml:6:5: error" in result.err
    assert "bathcing: {max: 8" in result.err
    assert "batching" in result.err.replace("bathcing", "")
    assert "1 error" in result.err


def wrong_models(folder: Path) -> dict[str, Path]:
    """Things that are no model, by what is wrong with them."""
    made = {name: folder / f"{name}.onnx" for name in ("missing", "empty", "html", "lfs", "folder", "truncated", "text")}
    made["empty"].write_bytes(b"")
    made["html"].write_text("<!DOCTYPE html>\n<html><body>Not found</body></html>")
    made["lfs"].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n")
    made["folder"].mkdir()
    networks.mlp(made["truncated"], features=64)
    made["truncated"].write_bytes(made["truncated"].read_bytes()[:300])
    made["text"].write_text("this is no model\n" * 20)
    return made


@pytest.mark.parametrize("command", ["init", "render"])
def test_what_is_no_model_is_refused_all_at_once(tmp_path, tritongen, command):
    made = wrong_models(tmp_path)
    if command == "render":
        lines = "".join(f"  - {{name: {name}, source: {path.name}}}\n" for name, path in made.items())
        (tmp_path / "spec.yaml").write_text(f"version: 1\nmodels:\n{lines}")
        result = tritongen("render", tmp_path / "spec.yaml")
    else:
        result = tritongen("init", *made.values(), "-o", tmp_path / "new.yaml")
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    for name in made:
        assert f"{name}.onnx" in result.err, name
    assert f"{len(made)} errors" in result.err
    assert not (tmp_path / "model_repository").exists()
    assert not (tmp_path / "new.yaml").exists()


@pytest.mark.parametrize(
    "text", [b"", b"- a\n", b"version: 2\nmodels: []\n", b"\xff\xfe\x00", b"a: b\n\tc: d\n", b"version: 1\nversion: 1\nmodels: []\n", b"just words"]
)
def test_what_is_no_spec_is_refused_with_a_place(tmp_path, tritongen, text):
    (tmp_path / "spec.yaml").write_bytes(text)
    for command in ("render", "serve"):
        result = tritongen(command, tmp_path / "spec.yaml")
        assert result.code == 2
        assert "spec.yaml" in result.err
        assert "Traceback" not in result.err


def test_init_writes_a_spec_that_renders_as_it_is(tmp_path, tritongen):
    networks.mlp(tmp_path / "models/my net.onnx")
    networks.mlp(tmp_path / "models/My_Net.onnx", batch=2)
    done = tritongen("init", *sorted((tmp_path / "models").iterdir()), "-o", tmp_path / "spec.yaml")
    assert done.code == 0
    assert "tritongen serve" in done.out
    rendered = tritongen("render", tmp_path / "spec.yaml", "--strict")
    assert (rendered.code, rendered.err) == (0, "")
    assert {path.name for path in (tmp_path / "model_repository").iterdir()} == {"My_Net", "my_net_2"}


def test_init_does_not_overwrite(project, tritongen):
    before = (project / "spec.yaml").read_text()
    stopped = tritongen("init", project / "mlp.onnx", "-o", project / "spec.yaml")
    assert stopped.code == 2
    assert (project / "spec.yaml").read_text() == before
    assert tritongen("init", project / "mlp.onnx", "-o", project / "spec.yaml", "--force").code == 0


def test_init_leaves_a_todo_where_no_size_runs(tmp_path, tritongen):
    """A model that never runs: it joins the rows of two foldings of its input, whose numbers of rows are never equal."""
    folds = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [2], [-1, width])) for name, width in (("s", 5), ("t", 7))
    ]
    nodes = [
        *folds,
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
        helper.make_node("Concat", ["r", "y"], ["z"], axis=1),
    ]
    networks.save(tmp_path / "never.onnx", nodes, [("x", TensorProto.FLOAT, ["length"])], [("z", TensorProto.FLOAT, ["a", 12])])
    done = tritongen("init", tmp_path / "never.onnx", "-o", tmp_path / "spec.yaml")
    assert done.code == 0
    assert "TODO" in done.out
    text = (tmp_path / "spec.yaml").read_text()
    assert "TODO" in text
    assert "Reshape" in text or "Concat" in text
    assert "warmup: none" in text
    assert tritongen("render", tmp_path / "spec.yaml").code == 0


def test_init_finds_a_length_that_runs(tmp_path, tritongen):
    nodes = [
        helper.make_node("Constant", [], ["s"], value=helper.make_tensor("s", TensorProto.INT64, [2], [-1, 512])),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["length"])], [("y", TensorProto.FLOAT, ["a", 512])])
    tritongen("init", tmp_path / "m.onnx", "-o", tmp_path / "spec.yaml")
    assert "x: [512]" in (tmp_path / "spec.yaml").read_text()


def test_init_notices_that_a_batch_axis_is_none(tmp_path, tritongen):
    """The file says `N`, and the graph takes only 1."""
    nodes = [
        helper.make_node("Constant", [], ["s"], value=helper.make_tensor("s", TensorProto.INT64, [2], [1, 3])),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, ["M", 3])])
    tritongen("init", tmp_path / "m.onnx", "-o", tmp_path / "spec.yaml")
    assert "batching: none" in (tmp_path / "spec.yaml").read_text()
    assert tritongen("render", tmp_path / "spec.yaml").code == 0


def test_schema_is_json_and_names_every_key(tritongen):
    schema = json.loads(tritongen("schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "batching" in json.dumps(schema)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rendr"], "Did you mean 'render'"),
        (["render"], "Missing argument"),
        (["infer", "m", "-u", "localhost:8000"], "which protocol"),
        (["infer", "m", "-u", "grpc://localhost:99999"], "no valid port"),
        (["infer", "m", "-u", "http://local host"], "the address has spaces"),
        (["infer", "m", "--shape", "x=3,4"], "not a shape"),
        (["infer", "m", "--shape", "x"], "NAME=VALUE"),
        (["infer", "m", "--input", "x=no.npy"], "cannot be read"),
        (["render", "spec.yaml", "--prove-limit", "12parsecs"], "parsecs"),
        (["serve", "does/not/exist"], "neither a spec nor a model repository"),
        (["serve", "--release", "99.99", "."], "the release is '99.99'"),
    ],
)
def test_wrong_arguments_are_exit_code_2_with_a_reason(tritongen, arguments, words):
    result = tritongen(*arguments)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mlp.onnx", ["this is an ONNX model", "`tritongen init mlp.onnx`"]),
        ("config.pbtxt", ["this is the config of one model"]),
        ("M.PLAN", ["a TensorRT plan"]),
    ],
)
def test_serving_a_file_of_another_kind_says_what_it_is(tritongen, project, monkeypatch, name, words):
    monkeypatch.chdir(project)
    (project / name).touch()
    result = tritongen("serve", name)
    assert result.code == 2
    assert all(word in result.err for word in words), result.err


def test_no_server_is_exit_code_3_and_says_where_it_looked(tritongen):
    for url in ("grpc://127.0.0.1:1", "http://127.0.0.1:1"):
        result = tritongen("infer", "m", "-u", url, "--timeout", 5)
        assert result.code == 3
        assert url in result.err


def test_help_of_every_command_says_what_it_does(tritongen):
    overview = tritongen("--help").out
    for name in ("render", "check", "init", "serve", "infer", "doctor", "schema"):
        assert name in overview
        assert tritongen(name, "--help").code == 0


def test_init_refuses_what_no_spec_can_serve(tmp_path, tritongen):
    networks.save(tmp_path / "zero.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N", 0])], [("y", TensorProto.FLOAT, ["N", 0])])
    networks.save(
        tmp_path / "new.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, ["N", 3])], opset=99
    )
    for name, code in (("zero", "TG102"), ("new", "TG141")):
        result = tritongen("init", tmp_path / f"{name}.onnx", "-o", tmp_path / "spec.yaml")
        assert result.code == 2
        assert code in result.err
        assert not (tmp_path / "spec.yaml").exists()


def test_init_notices_rows_that_are_none(tmp_path, tritongen):
    shape = helper.make_node("Constant", [], ["s"], value=helper.make_tensor("s", TensorProto.INT64, [2], [-1, 7]))
    nodes = [shape, helper.make_node("Reshape", ["x", "s"], ["y"])]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 14])], [("y", TensorProto.FLOAT, ["M", 7])])
    tritongen("init", tmp_path / "m.onnx", "-o", tmp_path / "spec.yaml")
    text = (tmp_path / "spec.yaml").read_text()
    assert "batching: none" in text
    assert "first axis is not the batch" in text
    assert tritongen("render", tmp_path / "spec.yaml").code == 0


@pytest.mark.parametrize(("shape", "todo"), [(["N", 3], False), (["N", "L"], True)])
def test_init_without_a_try_says_so_and_asks_only_for_what_it_needs(tmp_path, tritongen, shape, todo):
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])
    done = tritongen("init", tmp_path / "m.onnx", "-o", tmp_path / "spec.yaml", "--prove-limit", "0")
    text = (tmp_path / "spec.yaml").read_text()
    assert "nothing could be tried" in done.out
    assert ("TODO" in text) == todo
    assert ("warmup: none" in text) == todo
    assert "ONNX Runtime says" not in text


def test_what_force_cannot_replace_is_not_said_to_be_forcible(project, tritongen):
    (project / "model_repository").mkdir()
    (project / "model_repository/mlp").write_text("a file")
    for options in ([], ["--force"]):
        result = tritongen("render", project / "spec.yaml", *options)
        assert result.code == 2
        assert "remove it" in result.err


def test_a_config_that_was_deleted_is_said_to_be_missing(project, tritongen):
    tritongen("render", project / "spec.yaml")
    (project / "model_repository/mlp/config.pbtxt").unlink()
    assert "it has no config.pbtxt" in tritongen("render", project / "spec.yaml").err


@pytest.mark.parametrize(("arguments", "made"), [(["render"], True), (["render", "--check"], False), (["render", "--dry-run"], False)])
def test_output_that_finds_no_place_is_said_and_is_no_verdict(project, arguments, made):
    command = [sys.executable, "-m", "tritongen", arguments[0], project / "spec.yaml", *arguments[1:]]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 3
    assert "error: the output could not be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
    assert (project / "model_repository/mlp/config.pbtxt").is_file() is made


def test_an_onnxruntime_that_does_not_work_is_said(project, tmp_path):
    (tmp_path / "broken/onnxruntime").mkdir(parents=True)
    (tmp_path / "broken/onnxruntime/__init__.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    command = [sys.executable, "-m", "tritongen", "render", project / "spec.yaml"]
    search = os.pathsep.join([str(tmp_path / "broken"), *sys.path])
    result = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True, timeout=60)
    assert result.returncode == 3
    assert "error: onnxruntime is installed and cannot be imported: libcudart.so.12: cannot open shared object file" in result.stderr
    assert "what to do: install it again" in result.stderr
    assert not (project / "model_repository").exists()
