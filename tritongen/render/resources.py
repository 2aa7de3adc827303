"""Resources of the rate limiter, which all models of a server share by name: each is either for all devices together, or for every device by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tritongen.render.findings import Findings
from tritongen.render.placement import Taken, placed_groups
from tritongen.spec import ModelSpec


def judge_resources(models: Sequence[ModelSpec], collectors: Sequence[Findings]) -> None:
    """Say where a resource is of two kinds, in one model or in two; `collectors` are those of the models, in the same order."""
    first: dict[str, tuple[Taken, Findings]] = {}
    for model, findings in zip(models, collectors, strict=True):
        for taken in (taken for group in placed_groups(model) for taken in group.resources):
            other, others = first.setdefault(taken.name, (taken, findings))
            if taken.is_global == other.is_global:
                continue
            here, there = ("global", "per device") if taken.is_global else ("per device", "global")
            whose = "" if others is findings else f" of model '{others.model}'"
            findings.error(
                "TG176",
                taken.key,
                f"rate limiter resource '{taken.name}' is {here} here and {there} at {others.locate(other.key)}{whose}",
                consequence="with --rate-limit=execution_count Triton refuses the model; without it, no resource is looked at",
                hint="write global the same way in both places, or give the two resources different names",
            )
