"""What is not said of a model.py, since only a newer Python, another file or a run could tell."""

import pytest

from tritongen.check.evaluate import evaluate_path
from tritongen.releases import find_release
from tritongen.rules import ServerFacts

CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [4] }
output { name: "y" data_type: TYPE_FP32 dims: [4] }
"""
GOOD = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def found(root, source, config=CONFIG, name="model.py", release=None):
    (root / "m/1").mkdir(parents=True, exist_ok=True)
    (root / "m/config.pbtxt").write_text(config)
    (root / "m/1" / name).write_bytes(source if isinstance(source, bytes) else source.encode())
    return [diagnostic for diagnostic in evaluate_path(root, ServerFacts(release)) if diagnostic.code.startswith("TG39")]


@pytest.mark.parametrize(
    "line",
    ["type Rows = list[int]", "def first[T](rows: list[T]) -> T: ...", "class Box[T]: ...", "x = t'{y}'", "lazy import json"],
)
def test_syntax_of_a_python_newer_than_any_that_runs_this_is_left_to_triton(line, tmp_path):
    assert found(tmp_path, f"{line}\n{GOOD}") == []


@pytest.mark.parametrize("line", ["type Rows = list[int]", "def first[T](rows: list[T]) -> T: ...", "class Box[T]: ...", "lazy import json"])
def test_syntax_that_is_newer_than_the_releases_python_is_refused_there(line, tmp_path):
    (finding,) = found(tmp_path, f"{line}\n{GOOD}", release=find_release("24.10"))
    assert finding.code == "TG390"
    assert "Python 3.10, which release 24.10 has" in finding.message
    assert "EXECUTION_ENV_PATH" in finding.hint


def test_a_model_with_an_environment_of_its_own_may_have_any_python(tmp_path):
    own = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/opt/env" } }\n'
    assert found(tmp_path, f"type Rows = int\n{GOOD}", CONFIG + own, release=find_release("24.10")) == []


@pytest.mark.parametrize(
    "text",
    [
        'f"{f"{1}"}"',
        'f"{"a"}"',
        'f"{\'a"b\'}"',
        "f\"{'\\n'}\"",
        'f"{1 # c\n}"',
        'f"{\n1}"',
        'f"""{"""a"""}"""',
    ],
)
def test_fstrings_of_python_312(text, tmp_path):
    assert [finding.code for finding in found(tmp_path / "old", f"x = {text}\n{GOOD}", release=find_release("24.10"))] == ["TG390"]
    assert found(tmp_path / "new", f"x = {text}\n{GOOD}", release=find_release("25.08")) == []


@pytest.mark.parametrize("text", ["f\"{f'{1}'}\"", 'f"""{"a"}"""', 'f"\\n{1}"', 'f"""{\n1}"""', 'rf"\\d{1}"', 'f"a{{}}\\"{1}"', 'f"{1:\\n}"'])
def test_fstrings_of_every_python(text, tmp_path):
    assert found(tmp_path, f"x = {text}\n{GOOD}", release=find_release("24.10")) == []


def test_a_mistake_has_its_line_and_column(tmp_path):
    (finding,) = found(tmp_path, GOOD + "x = = 1\n")
    assert (finding.code, finding.location.line, finding.location.column, finding.location.text) == ("TG390", 4, 5, "x = = 1")


def test_every_version_of_the_model_is_looked_at(tmp_path):
    (tmp_path / "m/2").mkdir(parents=True)
    (tmp_path / "m/2/model.py").write_text("x = 1\n")
    codes = [(finding.code, finding.location.path[-12:]) for finding in found(tmp_path, "def", CONFIG + "version_policy { all { } }\n")]
    assert sorted(codes) == [("TG390", "m/1/model.py"), ("TG391", "m/2/model.py")]


def test_a_large_or_compiled_file_is_left_alone(tmp_path):
    assert found(tmp_path / "large", "(" * 100_001) == []
    assert found(tmp_path / "compiled", b"\xcb\r\r\n\0\0", CONFIG + 'default_model_filename: "model.pyc"\n', "model.pyc") == []


def test_what_is_nested_too_deep_for_this_python_is_left_to_triton(tmp_path):
    assert found(tmp_path, f"x = {'-' * 50_000}1\n") == []


def test_warnings_about_a_users_strings_are_not_ours(tmp_path):
    assert found(tmp_path, GOOD + 'x = "\\d"\nx is 1\n') == []


def test_nothing_is_executed(tmp_path):
    assert found(tmp_path, GOOD + f"open({str(tmp_path / 'executed')!r}, 'w')\n") == []
    assert not (tmp_path / "executed").exists()
