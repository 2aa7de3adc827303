"""What tritongen promises: its names, and that asking for help costs nothing."""

import subprocess
import sys

import tritongen

NAMES = [
    "AsyncClient", "Client", "EmbeddedServer", "InferenceError", "InputError", "InvalidInput", "LoadedSpec", "Result", "ServerOptions", "ServerStartError",
    "Signature", "TensorSpec", "Tls", "TritongenError", "load_spec", "read_onnx", "render", "serve",
]  # fmt: skip
HEAVY = ("onnx", "onnxruntime", "tritonclient", "locust", "numpy", "pydantic", "jinja2", "google.protobuf")


def test_the_public_names_are_these():
    assert sorted(tritongen.__all__) == NAMES
    for name in NAMES:
        assert getattr(tritongen, name).__doc__, name
    assert set(NAMES) <= set(dir(tritongen))


def test_a_promised_name_stays_what_it_is_whatever_is_imported():
    """`tritongen.render` is a function, and there is a package of that name, which Python would put in its place."""
    code = "import tritongen, tritongen.render.compile; from tritongen.render import compile_model; assert tritongen.render.__module__ == 'tritongen.workflow'"
    assert "tritongen.render.compile" in imported_by(code)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(tritongen, "does_not_exist")


def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has after `code`."""
    done = subprocess.run([sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_help_imports_nothing_heavy():
    assert not imported_by("from tritongen.cli.main import run; run(['--help'])").intersection(HEAVY)


def test_importing_tritongen_imports_nothing_heavy():
    assert not imported_by("import tritongen").intersection(HEAVY)
