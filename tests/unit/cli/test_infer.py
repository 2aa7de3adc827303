"""`tritongen infer` without a server: what it refuses, and that it writes nowhere that was not asked for."""

from pathlib import Path

import numpy as np
import pytest

import tritongen as package
from tritongen.report.text import format_error

NOWHERE = ["-u", "grpc://127.0.0.1:1", "--timeout", 5]


@pytest.mark.parametrize("command", [["infer", "m"], ["render", "spec.yaml"], ["init", "mlp.onnx"]])
def test_an_empty_output_is_refused_and_nothing_is_written(project, tritongen, monkeypatch, command):
    monkeypatch.chdir(project)
    before = sorted(Path().rglob("*"))
    result = tritongen(*command, "-o", "")
    assert result.code == 2
    assert "the path is empty" in result.err
    assert sorted(Path().rglob("*")) == before


def test_files_of_other_kinds_are_refused_with_how_to_save_them(tmp_path, tritongen, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", left=np.ones(3), right=np.ones(2))
    for name in ("mk.py", "data.bin", "broken.npz"):
        Path(name).write_text("x")
    Path("text.npy").write_text("x")
    wanted = {
        "a.npz": ["'left', 'right'", "np.save('left.npy', np.load('a.npz')['left'])"],
        "mk.py": ["only .npy files are read"],
        "data.bin": ["only .npy files are read", "numpy.save"],
        "broken.npz": ["cannot be read"],
        "text.npy": ["cannot be read as a .npy file"],
    }
    for name, words in wanted.items():
        result = tritongen("infer", "m", "--input", f"x={name}", *NOWHERE)
        assert result.code == 2
        for word in words:
            assert word in result.err.replace("\n", " "), name


def test_a_path_may_hold_what_stands_between_name_and_value(tmp_path, tritongen):
    folder = tmp_path / "day=1"
    folder.mkdir()
    (folder / "x.npy").write_text("no array")
    result = tritongen("infer", "m", "--input", f"x={folder / 'x.npy'}", *NOWHERE)
    assert result.code == 2
    assert "day=1/x.npy cannot be read as a .npy file" in result.err.replace("\n", "").replace("  ", " ")


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 10_000, "\udcff", "a" * 5000])
def test_values_that_no_reader_takes_are_no_traceback(tritongen, value):
    assert tritongen("infer", "m", "--input", f"x={value}", *NOWHERE).code == 3


def test_what_a_server_says_is_shown_and_not_obeyed():
    text = format_error(package.InferenceError("it has 'a\x1b[2J'\nsecond line", hint="did you mean 'b\x07'?"))
    assert text.splitlines()[0].endswith(r"it has 'a\x1b[2J'")
    assert text.splitlines()[1] == "second line"
    assert text.endswith(r"did you mean 'b\x07'?")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "1e12", "0", "-1"])
def test_a_time_limit_that_is_none_is_no_traceback(tritongen, protocol, seconds):
    result = tritongen("infer", "m", "-u", f"{protocol}://127.0.0.1:1", "--timeout", seconds)
    assert result.code == 2
    assert "time limit" in result.err or "range" in result.err


def test_serve_takes_settings_and_names_a_misspelt_one():
    with pytest.raises(TypeError, match="did you mean 'http_port'"), package.serve("spec.yaml", htp_port=0):
        pass
    with pytest.raises(package.InputError, match="port"), package.serve("spec.yaml", http_port=-5):
        pass


def test_texts_that_a_file_does_not_keep_whole_are_said(tmp_path, capsys):
    from tritongen.cli.infer import _save

    _save(tmp_path, {"y": np.array([b"a\0", b"b"], dtype=object), "z": np.array([b"a"], dtype=object)})
    said = capsys.readouterr().out.splitlines()
    assert "y.npy, where 1 texts lost the zero bytes" in said[0]
    assert said[1].endswith("z.npy")
