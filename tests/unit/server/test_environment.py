"""Which Python may serve, and what is said where none may."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from tritongen.errors import EnvironmentProblem, MissingExtra
from tritongen.server import doctor, environment, setup
from tritongen.server.interpreter import clean_environment, probe


@pytest.fixture(scope="module")
def real():
    return probe(Path(sys.executable))


@pytest.fixture(autouse=True)
def no_private_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def use(monkeypatch, current, private=None):
    """Make `current` what the probe of this interpreter finds, and `private` what it finds in the private environment."""

    def found(executable):
        return private if executable == environment.private_python() else current

    monkeypatch.setattr(environment, "probe", found)
    monkeypatch.setattr(doctor, "probe", found)
    if private is not None:
        marker = environment.completion_marker(environment.private_environment())
        marker.parent.mkdir(parents=True)
        marker.write_text("")


def test_this_interpreter_can_serve(real):
    assert environment.shortcomings(real) == []
    assert real.is_virtual == (sys.prefix != sys.base_prefix)
    assert environment.choose().server.is_file()
    assert environment.choose().stub.is_file()


@pytest.mark.parametrize("version", ["2.0.0", "2.3.1", "3.1"])
def test_numpy_2_is_never_started_on(real, monkeypatch, version):
    use(monkeypatch, dataclasses.replace(real, numpy=version))
    with pytest.raises(EnvironmentProblem, match=rf"numpy is {version} \(Triton's stub needs numpy 1\.x: with numpy 2 every input reads as zeros") as caught:
        environment.choose()
    assert "tritongen doctor --setup" in caught.value.hint
    assert not isinstance(caught.value, MissingExtra)


def test_the_private_environment_serves_where_the_current_cannot(real, monkeypatch):
    private = dataclasses.replace(real, executable=environment.private_python())
    use(monkeypatch, dataclasses.replace(real, numpy="2.1.0", libpython=None), private)
    assert environment.choose().interpreter is private


def test_a_damaged_private_environment_is_said_to_be_damaged(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, numpy="2.1.0"), dataclasses.replace(real, onnxruntime=None))
    with pytest.raises(EnvironmentProblem, match="is damaged: onnxruntime is not installed"):
        environment.choose()


def test_a_missing_extra_is_one_line_with_the_command(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, pytriton=None, wheel=None, onnxruntime=None))
    with pytest.raises(MissingExtra, match=r"pip install 'tritongen\[serve\]'"):
        environment.choose()


def test_the_extra_would_bring_numpy_1_too_and_the_way_around_is_named(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, pytriton=None, wheel=None, numpy="2.3.1"))
    with pytest.raises(MissingExtra, match=r"pip install 'tritongen\[serve\]'") as caught:
        environment.choose()
    assert "numpy back to 1.x" in caught.value.hint
    assert "doctor --setup" in caught.value.hint


def test_where_the_extra_brings_no_triton_nothing_names_it(real, monkeypatch):
    bare = dataclasses.replace(real, version=(3, 13, 1), pytriton=None, wheel=None, numpy="2.3.1", onnxruntime=None)
    use(monkeypatch, bare)
    with pytest.raises(EnvironmentProblem) as caught:
        environment.choose()
    assert not isinstance(caught.value, MissingExtra)
    assert "doctor --setup" in caught.value.hint
    for item in environment.shortcomings(bare):
        assert "pip install" not in item.fix
        assert "doctor --setup" in item.fix


def test_every_shortcoming_is_told_at_once(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, pytriton=None, libpython=None, numpy="2.1.0"))
    with pytest.raises(EnvironmentProblem) as caught:
        environment.choose()
    for part in ("nvidia-pytriton is not installed", f"libpython{real.minor}.so.1.0 is not found", "numpy is 2.1.0"):
        assert part in str(caught.value)


def test_a_python_without_a_stub(real):
    (found,) = environment.shortcomings(dataclasses.replace(real, version=(3, 14, 0)))
    assert (found.part, found.found) == ("Python", "3.14")


def test_an_interpreter_that_does_not_work_is_an_environment_problem(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(EnvironmentProblem, match="does not work: no such luck"):
        probe(broken)
    with pytest.raises(EnvironmentProblem, match="cannot be run"):
        probe(tmp_path / "absent")


def test_the_server_does_not_inherit_what_changes_imports(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("PYTHONHOME", "/elsewhere")
    monkeypatch.setenv("VIRTUAL_ENV", "/other")
    monkeypatch.setenv("PYTHONUSERBASE", "/kept")
    cleaned = clean_environment()
    assert not {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"} & set(cleaned)
    assert cleaned["PYTHONUSERBASE"] == "/kept"


def test_a_python_for_the_private_environment_is_found(real):
    assert setup.find_python().minor in setup.MINORS


def test_no_suitable_python_is_told_with_what_was_looked_at(real, monkeypatch):
    monkeypatch.setattr(setup, "probe", lambda _path: dataclasses.replace(real, libpython=None))
    with pytest.raises(EnvironmentProblem, match=r"looked at: .*without a shared library") as caught:
        setup.find_python()
    assert "apt install" in caught.value.hint


def by_name(checks):
    return {check.name: check for check in checks}


def test_the_doctor_finds_this_machine_fit():
    checks = doctor.diagnose()
    assert doctor.can_serve(checks), [check for check in checks if not check.ok]
    assert "CPU" in by_name(checks)["onnxruntime's providers"].found


def test_the_doctor_tells_of_numpy_2_and_how_to_mend_it(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, numpy="2.1.0"))
    checks = doctor.diagnose()
    found = by_name(checks)
    assert not doctor.can_serve(checks)
    assert (found["numpy"].ok, found["numpy"].found, found["numpy"].required) == (False, "2.1.0", True)
    assert "doctor --setup" in found["numpy"].fix
    assert "doctor --setup" in found["private environment"].fix


def test_with_a_private_environment_the_current_one_need_not_be_fit(real, monkeypatch):
    use(monkeypatch, dataclasses.replace(real, numpy="2.1.0"), real)
    checks = doctor.diagnose()
    assert doctor.can_serve(checks)
    assert (by_name(checks)["numpy"].ok, by_name(checks)["numpy"].required) == (False, False)
