"""`tritongen infer` without a server: what it refuses, and that it writes nowhere that was not asked for."""

from pathlib import Path

import certificates
import numpy as np
import pytest
import scripted_triton
import tls_servers

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


TOKEN, KEY = "t0k3n-of-nobody", "k3y-of-nobody"


@pytest.fixture
def triton(monkeypatch):
    monkeypatch.delenv("TRITONGEN_TOKEN", raising=False)
    with scripted_triton.serve() as script:
        yield script


def test_a_token_and_headers_reach_the_server(tmp_path, tritongen, triton):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    result = tritongen("infer", "m", "-u", triton.url, "--token-file", tmp_path / "token", "--header", f"x-key={KEY}=2", "--header", "x-empty=")
    assert result.code == 0, result.err
    headers = triton.asked[0].headers
    assert (headers["authorization"], headers["x-key"], headers["x-empty"]) == (f"Bearer {TOKEN}", f"{KEY}=2", "")


def test_a_token_may_stand_in_the_environment(tritongen, triton, monkeypatch):
    monkeypatch.setenv("TRITONGEN_TOKEN", TOKEN)
    assert tritongen("infer", "m", "-u", triton.url).code == 0
    monkeypatch.setenv("TRITONGEN_TOKEN", "")
    assert tritongen("infer", "m", "-u", triton.url).code == 0
    assert [asked.headers.get("authorization") for asked in triton.asked] == [f"Bearer {TOKEN}", None]


def test_a_server_with_tls_that_wants_a_certificate_is_reached(tmp_path, tritongen):
    for name, text in (("cert", certificates.CERT), ("key", certificates.KEY)):
        (tmp_path / name).write_text(text)
    own = ["--tls-cert", tmp_path / "cert", "--tls-key", tmp_path / "key"]
    with scripted_triton.serve(tls_servers.context(mutual=True)) as script:
        assert tritongen("infer", "m", "-u", script.url, "--tls-ca", tls_servers.LOCALHOST, *own).code == 0
        stranger = tritongen("infer", "m", "-u", script.url, *own, "--timeout", 10)
    assert stranger.code == 3
    assert "trust its certificate" in " ".join(stranger.err.split())


WRONG_ACCESS = [
    (["--token-file", "missing"], "--token-file missing cannot be read: No such file"),
    (["--token-file", "."], "--token-file . cannot be read: Is a directory"),
    (["--token-file", "empty"], "--token-file empty holds no token: it is empty"),
    (["--token-file", "binary"], "it is no text of ASCII"),
    (["--token-file", "lines"], "the token cannot be sent"),
    (["--header", KEY], "--header: number 1 has no name or no value"),
    (["--header", f"={KEY}"], "number 1 has no name"),
    (["--header", f"x={KEY}", "--header", f"X={KEY}"], "--header X is given twice"),
    (["--header", f"x y={KEY}"], "the header 'x y' cannot be sent"),
    (["--tls-cert", "lines"], "--tls-cert and --tls-key, together"),
    (["--tls-ca", "missing"], "nothing would be encrypted"),
]


@pytest.mark.parametrize(("options", "words"), WRONG_ACCESS, ids=[item[1] for item in WRONG_ACCESS])
def test_access_that_cannot_be_given_is_said_without_its_values(tmp_path, tritongen, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    for name, content in (("empty", b" \n"), ("binary", b"\xff\xfe"), ("lines", f"{TOKEN}\n{TOKEN}".encode())):
        Path(name).write_bytes(content)
    result = tritongen("infer", "m", *options, *NOWHERE)
    assert result.code == 2
    assert words in " ".join(result.err.split())
    assert TOKEN not in result.err + result.out
    assert KEY not in result.err + result.out


@pytest.mark.parametrize("datatype", ["BYTES", "FP32"])
def test_nothing_among_values_is_said_and_not_sent(tritongen, triton, datatype):
    triton.datatype = datatype
    result = tritongen("infer", "m", "-u", triton.url, "--input", "x=[[null,null]]")
    assert result.code == 2
    assert "null" in result.err
    assert triton.asked == []
