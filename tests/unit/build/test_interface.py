"""What is called of TensorRT: checked against the published types of version 10, and against what versions 10 and 11 took away."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tensorrt_rtx

import tritongen.build
from tests.unit.build.removed import GONE_IN_10, GONE_IN_11

PACKAGE = Path(tritongen.build.__file__).parent
SOURCES = sorted(PACKAGE.glob("*.py"))
OWN = frozenset({"precision"})
"""Names of the recipe's own fields that TensorRT's interface had, too."""
MENDED = ((r"\bin: list\[", "in_: list["), (r"channel_axis: int\) -> IScaleLayer", "channel_axis: int = ...) -> IScaleLayer"))
"""What is no Python in the published stubs, and what stands for it."""
CONFIG = """
[mypy]
strict = True
follow_imports = silent
warn_unused_ignores = False
[mypy-tensorrt_libs.*,pydantic.*]
ignore_missing_imports = True
follow_imports = skip
[mypy-tensorrt.*,tensorrt_bindings.*]
ignore_errors = True
"""


def stubs() -> Path:
    """The folder that the stubs were installed to."""
    spec = importlib.util.find_spec("tensorrt_stubs")
    assert spec is not None
    assert spec.origin
    return Path(spec.origin).parent.parent


def test_the_types_are_those_of_tensorrt_10(tmp_path: Path) -> None:
    for name in ("tensorrt/__init__.pyi", "tensorrt_bindings/__init__.pyi", "tensorrt_bindings/tensorrt.pyi"):
        text = (stubs() / name).read_text()
        text = re.sub(r'"""[\s\S]*?"""', "...", text)  # nine tenths of it
        for wrong, right in MENDED:
            text = re.sub(wrong, right, text)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "mypy.ini").write_text(CONFIG)
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache"), str(PACKAGE)]
    result = subprocess.run(command, capture_output=True, text=True, env={"MYPYPATH": str(tmp_path)}, cwd=PACKAGE.parent.parent, check=False)
    assert result.stdout.startswith("Success"), result.stdout + result.stderr


def names(source: Path) -> set[str]:
    """Attributes that are asked for, and words in texts that may be asked for by name."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_nothing_is_called_that_a_version_took_away(source: Path) -> None:
    assert not names(source) & (GONE_IN_10 | GONE_IN_11) - OWN


def members() -> set[tuple[str, str]]:
    """The (enum, member) that are asked by name."""
    found = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "member":
                enum, member = node.args
                assert isinstance(enum, ast.Constant)
                if isinstance(member, ast.Constant):
                    found.add((str(enum.value), str(member.value)))
    return found | {("BuilderFlag", name) for name in ("VERSION_COMPATIBLE", "REFIT", "STRIP_PLAN", "GPU_FALLBACK")}


def test_what_is_asked_by_name_is_there_in_both_interfaces() -> None:
    text = (stubs() / "tensorrt_bindings/tensorrt.pyi").read_text()
    asked = members()
    assert ("BuilderFlag", "TF32") in asked
    for enum, member in asked:
        assert hasattr(getattr(tensorrt_rtx, enum), member), f"{enum}.{member}"
        body = text[re.search(rf"^class {enum}:$", text, re.MULTILINE).end() :]
        assert re.search(rf"^    {member}: ", body.partition("\nclass ")[0], re.MULTILINE), f"{enum}.{member}"
