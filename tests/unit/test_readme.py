"""What the README shows is true."""

import re
from pathlib import Path

import networks

from tritongen.cli.main import _COMMANDS
from tritongen.spec import load_spec

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def test_the_spec_is_one(tmp_path):
    (tmp_path / "spec.yaml").write_text(blocks("yaml")[0])
    assert load_spec(tmp_path / "spec.yaml").spec.models[0].name == "text_recognizer"


def test_the_commands_exist():
    named = set(re.findall(r"tritongen (\w+)", "".join(blocks("console")))) | set(re.findall(r"^\| `tritongen (\w+)", README.read_text(), re.MULTILINE))
    assert named == set(_COMMANDS)


def test_the_mistake_is_reported_as_shown(tmp_path, monkeypatch, tritongen):
    shown = next(block for block in blocks("console") if "bathcing" in block).split("\n", 1)[1]
    monkeypatch.chdir(tmp_path)
    networks.mlp(tmp_path / "recognizer.onnx")
    Path("spec.yaml").write_text("version: 1\nmodels:\n  - name: text_recognizer\n    source: recognizer.onnx\n\n    bathcing: {max: 16}\n")
    assert shown.strip() in tritongen("render", "spec.yaml").err


def test_the_python_block_compiles():
    for block in blocks("python"):
        compile(block, "README.md", "exec")
