"""Rules: parameters."""

from __future__ import annotations

from tritongen.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
