"""Where a model's file is."""

import sys
from pathlib import Path

import pytest

from tritongen.diagnostics import Location
from tritongen.errors import SpecError
from tritongen.spec import resolve_source
from tritongen.spec.models import Source


def source(**keys):
    return Source.model_validate(keys)


def refusal(**keys):
    with pytest.raises(SpecError) as caught:
        resolve_source(source(**keys), Path("/specs"), location=Location("spec.yaml", 4, 5), model="m")
    (finding,) = caught.value.diagnostics
    assert (finding.location, finding.model, bool(finding.hint)) == (Location("spec.yaml", 4, 5), "m", True)
    return finding


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder on sys.path for packages made by the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class TestPlainPaths:
    def test_relative_absolute_and_home(self):
        folder = Path("/specs/a")
        assert resolve_source(source(path="m.onnx"), folder) == Path("/specs/a/m.onnx")
        assert resolve_source(source(path="../m.onnx"), folder) == Path("/specs/a/../m.onnx")
        assert resolve_source(source(path="/data/m.onnx"), folder) == Path("/data/m.onnx")
        assert resolve_source(source(path="~/m.onnx"), folder) == Path.home() / "m.onnx"

    def test_unknown_user(self):
        assert refusal(path="~nosuchuserhere/m.onnx").code == "TG016"


class TestPackages:
    def test_file_of_a_package_that_is_never_imported(self, packages):
        package = packages / "carrier_of_models"
        (package / "models").mkdir(parents=True)
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        (package / "models" / "x.onnx").write_bytes(b"x")
        found = resolve_source(source(package="carrier_of_models", path="models/x.onnx"), Path("/specs"))
        assert found == package / "models" / "x.onnx"
        assert "carrier_of_models" not in sys.modules

    def test_missing_file_is_for_its_reader_to_report(self, packages):
        (packages / "empty_carrier").mkdir()
        (packages / "empty_carrier" / "__init__.py").touch()
        assert resolve_source(source(package="empty_carrier", path="x.onnx"), Path("/specs")) == packages / "empty_carrier" / "x.onnx"

    def test_package_in_several_folders(self, packages, monkeypatch):
        for name in ("one", "two"):
            (packages / name / "spread_carrier").mkdir(parents=True)
            monkeypatch.syspath_prepend(str(packages / name))
        (packages / "one" / "spread_carrier" / "x.onnx").touch()
        assert resolve_source(source(package="spread_carrier", path="x.onnx"), Path("/specs")) == packages / "one" / "spread_carrier" / "x.onnx"

    def test_not_installed(self):
        finding = refusal(package="no_such_package_here", path="x.onnx")
        assert (finding.code, "not installed" in finding.message, finding.hint) == ("TG017", True, "pip install no-such-package-here")

    def test_a_module_has_no_files(self, packages):
        (packages / "lone_module_here.py").touch()
        assert "single Python module" in refusal(package="lone_module_here", path="x.onnx").message

    def test_a_module_without_a_spec(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "specless_here", type(sys)("specless_here"))
        assert "not installed" in refusal(package="specless_here", path="x.onnx").message

    @pytest.mark.parametrize("path", ["../x.onnx", "a/../../x.onnx", "/x.onnx", "~/x.onnx", "a\\..\\x.onnx", "\\x.onnx"])
    def test_the_path_may_not_leave_the_package(self, folder, path):
        finding = folder.finding(f"version: 1\nmodels:\n  - name: m\n    source: {{package: pydantic, path: '{path}'}}\n")
        assert (finding.code, finding.location.line) == ("TG017", 4)
        assert "leaves the package" in finding.message

    @pytest.mark.parametrize("package", ["a.b", "a-b", "a/b", "1a", "''", "ä"])
    def test_only_top_level_import_names(self, folder, package):
        finding = folder.finding(f"version: 1\nmodels:\n  - name: m\n    source: {{package: {package}, path: x}}\n")
        assert (finding.code, finding.location.line) == ("TG011", 4)
        assert "not the name of a Python package" in finding.message
