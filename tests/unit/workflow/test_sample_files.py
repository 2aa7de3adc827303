"""Samples in files become warmup samples: the first file by its name; what does not fit is said where the spec names it."""

import sys

import goldens
import networks
import numpy as np
import pytest
from PIL import Image

from tritongen.errors import InputError
from tritongen.repository import apply_plan
from tritongen.workflow.rendering import plan_render

SPEC = "version: 1\nmodels:\n  - {name: mlp, source: mlp.onnx, samples: {x: {files: data}}}\n"


@pytest.fixture
def spec(tmp_path):
    networks.mlp(tmp_path / "mlp.onnx")
    (tmp_path / "data").mkdir()
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path / "spec.yaml"


def test_the_first_by_name_is_the_warmup_sample(spec):
    for name, value in (("b", 2.0), ("a", 1.0)):
        np.save(spec.parent / f"data/{name}.npy", np.full(8, value))
    with plan_render(spec) as rendering:
        apply_plan(rendering.plan)
    sample = np.fromfile(rendering.plan.root / "mlp/warmup/input0", np.float32)
    assert sample.tolist() == [1.0] * 8


@pytest.mark.parametrize(
    ("name", "write", "words"),
    [
        ("a.npy", lambda path: np.save(path, np.zeros(7)), "a.npy: expected the shape [8], got [7]"),
        ("a.npy", lambda path: path.write_bytes(b"x"), "a.npy cannot be read as a .npy file"),
        ("a.png", lambda path: Image.new("L", (2, 2)).save(path), "a.png: a picture becomes [height, width]"),
        ("a.pdf", lambda path: path.write_bytes(b"x"), "no FP32 can be made of"),
        ("a.txt", lambda path: path.write_text("words"), "no FP32 can be made of"),
    ],
)
def test_a_file_that_does_not_fit_is_said_where_the_spec_names_it(spec, name, write, words):
    write(spec.parent / "data" / name)
    with pytest.raises(InputError) as caught, plan_render(spec):
        pass
    (finding,) = caught.value.diagnostics
    assert (finding.code, words in finding.message) == ("TG116", True), finding.message
    assert SPEC.splitlines()[finding.location.line - 1][finding.location.column - 1 :].startswith("files: data")


def test_without_its_library_nothing_is_written_and_the_extra_is_named(tmp_path, monkeypatch, tritongen):
    spec = goldens.build("samples_in_files", tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    done = tritongen("render", spec)
    assert (done.code, "pip install 'tritongen[media]'" in done.err) == (3, True), done.err
    assert not (tmp_path / "model_repository").exists()
