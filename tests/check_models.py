"""Configs and rules made for the tests of `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tritongen.rules import Consequence, Edit, Finding, ModelContext, Rule

MLP = "input x FP32 [N, 8]\noutput y FP32 [N, 4]\n"
CONFIG = """\
name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 8
input {{ name: "x" data_type: TYPE_FP32 dims: [ 8 ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }}
"""


def rule(code: str, check: Callable[[ModelContext], Iterable[Finding]], **changes: object) -> Rule:
    """A rule of the tests' own."""
    fields: dict[str, object] = {"name": f"rule-{code.lower()}", "consequence": Consequence.IGNORED, "summary": "A rule.", "why": "x", "bad": "x", "good": "x"}
    return Rule(code, check=check, **{**fields, **changes})  # type: ignore[arg-type]


def no_batching(context: ModelContext) -> Iterable[Finding]:
    """Finds every max_batch_size above 0."""
    if context.config.max_batch_size:
        yield Finding(f"max_batch_size is {context.config.max_batch_size}, and 0 is expected", ("max_batch_size",), "write max_batch_size: 0")


def replacing(old: bytes, new: bytes) -> Callable[[ModelContext], Iterable[Finding]]:
    """A check that finds `old` in the text and mends it to `new`."""

    def check(context: ModelContext) -> Iterable[Finding]:
        start = context.text.find(old)
        if start >= 0:
            yield Finding(f"{old!r} is there", edits=(Edit(start, start + len(old), new),))

    return check
