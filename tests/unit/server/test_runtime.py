"""The private folder, and what is swept."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tritongen.errors import EnvironmentProblem
from tritongen.server import environment, runtime


@pytest.fixture(scope="module")
def chosen():
    return environment.choose()


@pytest.fixture
def base(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(runtime, "SHM", tmp_path / "shm")
    (tmp_path / "shm").mkdir()
    return tmp_path


def test_the_folder_is_for_its_owner_alone_and_the_working_directory_is_empty(chosen, base):
    made = runtime.create(chosen)
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
    assert list(made.cwd.iterdir()) == []
    assert not (made.backends / "python" / "triton_python_backend_stub").is_symlink()
    assert os.access(made.backends / "python" / "triton_python_backend_stub", os.X_OK)
    made.remove()
    assert not made.folder.exists()


def test_only_the_dead_of_this_user_and_namespace_are_swept(chosen, base):
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    dead, namespace = int(child.stdout), Path("/proc/self/ns/pid").stat().st_ino
    me = f"tritongen-{os.getpid()}-{runtime.start_time(os.getpid())}"
    kept = [
        f"{me}-{namespace}-abc",
        f"tritongen-{dead}-5-{namespace + 1}-abc",
        "tritongen-notes",
        f"other-{dead}-5-{namespace}-abc",
        f"{me}-{namespace}-abc-uuid",
    ]
    swept = [f"tritongen-{dead}-5-{namespace}-abc", f"tritongen-{os.getpid()}-1-{namespace}-reused"]
    for name in (*kept[:4], *swept):
        (base / name).mkdir()
        (base / name / "file").write_text("")
    (base / "shm" / kept[4]).write_text("")
    (base / "shm" / f"{swept[0]}-uuid").write_text("")
    assert {path.name for path in runtime.sweep()} == {*swept, f"{swept[0]}-uuid"}
    assert all((base / name).is_dir() for name in kept[:4])
    assert (base / "shm" / kept[4]).exists()


def test_the_stub_finds_our_backend_before_anything_of_site_packages(chosen, base):
    made = runtime.create(chosen)
    variables = runtime.variables(made, chosen, {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/mine"})
    assert variables["PYTHONPATH"] == str(made.modules)
    assert (made.modules / "model.py").is_file()
    assert variables["LD_LIBRARY_PATH"].split(":") == [str(chosen.libraries), str(made.folder / "lib"), "/mine"]
    assert [path.name for path in (made.folder / "lib").iterdir()] == [chosen.interpreter.libpython.name]
    assert variables["ORT_DISABLE_TELEMETRY"] == "1"
    assert runtime.variables(made, chosen, {"ORT_DISABLE_TELEMETRY": "0"})["ORT_DISABLE_TELEMETRY"] == "0"


def test_no_place_to_execute_from(base, monkeypatch):
    class NoExec:
        f_flag = os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda _path: NoExec())
    with pytest.raises(EnvironmentProblem, match="can be written to and executed from") as caught:
        runtime.base_folder()
    assert "TMPDIR" in caught.value.hint
