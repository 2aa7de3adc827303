"""What is called of TensorRT: checked against the published types of version 10, and against what versions 10 and 11 took away."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import re
import subprocess
import sys
import typing
from pathlib import Path, PurePosixPath

import pytest
import tensorrt_rtx

import tritongen.build
from tests.unit.build.removed import GONE_IN_10, GONE_IN_11
from tritongen.build.libraries import Library
from tritongen.build.options import builder_flags
from tritongen.recipe import PlanFile, PlanRecipe

PACKAGE = Path(tritongen.build.__file__).parent
SOURCES = sorted(PACKAGE.glob("*.py"))
OWN = frozenset({"precision"})
"""Names of the recipe's own fields that TensorRT's interface had, too."""
CHOICES = {name: typing.get_args(kind) for name, kind in typing.get_type_hints(PlanRecipe).items() if typing.get_origin(kind) is typing.Literal}
"""What a recipe may say of a field that has few words, which become names of TensorRT's by `.upper()`."""
MENDED = ((r"\bin: list\[", "in_: list["), (r"channel_axis: int\) -> IScaleLayer", "channel_axis: int = ...) -> IScaleLayer"))
"""What is no Python in the published stubs, and what stands for it."""
CAPABILITY = ast.unparse(ast.parse("f\"SM{each.replace('.', '')}\""))
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
            found |= {node.value, node.value.upper()}
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_nothing_is_called_that_a_version_took_away(source: Path) -> None:
    assert not names(source) & (GONE_IN_10 | GONE_IN_11) - OWN


def asked_flags(major: int) -> set[str]:
    """The builder's flags that recipes can ask for."""
    everything = {"version_compatible": True, "refit": True, "strip": True, "dla_core": 0}
    plain = PlanRecipe("m", 1, (PlanFile("model.plan"),), PurePosixPath("m"), {})
    recipes = [
        dataclasses.replace(plain, precision=precision, strongly_typed=typed, **everything) for precision in CHOICES["precision"] for typed in (False, True)
    ]
    return {flag for recipe in recipes for flag in builder_flags(recipe, major)}


def test_flags_of_precision_are_those_of_tensorrt_10_only() -> None:
    assert asked_flags(10) & GONE_IN_11 == {"FP16", "BF16", "INT8"}
    assert not asked_flags(10) & GONE_IN_10
    assert not asked_flags(11) & (GONE_IN_10 | GONE_IN_11)
    for library, major in (
        (Library("tensorrt-rtx", None, "1.7.1.116"), 11),
        (Library("tensorrt", None, "11.1.0.106"), 11),
        (Library("tensorrt", None, "10.5"), 10),
    ):
        assert library.tensorrt_major == major


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
                elif words := re.fullmatch(r"recipe\.(\w+)\.upper\(\)", ast.unparse(member)):
                    found |= {(str(enum.value), word.upper()) for word in CHOICES[words[1]]}
                else:
                    # The others are named by `builder_flags`, or are GPUs, which TensorRT-RTX lists itself.
                    assert (enum.value, ast.unparse(member)) in {("BuilderFlag", "name"), ("ComputeCapability", CAPABILITY)}
    return found | {("BuilderFlag", flag) for flag in asked_flags(11)}


def test_what_is_asked_by_name_is_there_in_both_interfaces() -> None:
    text = (stubs() / "tensorrt_bindings/tensorrt.pyi").read_text()
    asked = members()
    assert {("BuilderFlag", "TF32"), ("BuilderFlag", "STRIP_PLAN"), ("HardwareCompatibilityLevel", "AMPERE_PLUS")} <= asked
    for enum, member in asked:
        assert hasattr(getattr(tensorrt_rtx, enum), member), f"{enum}.{member}"
        body = text[re.search(rf"^class {enum}:$", text, re.MULTILINE).end() :]
        assert re.search(rf"^    {member}: ", body.partition("\nclass ")[0], re.MULTILINE), f"{enum}.{member}"
