"""Rules: onnx_models."""

from __future__ import annotations

from tritongen.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
