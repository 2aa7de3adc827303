"""The catalogue of rules: pure functions over a scanned repository, its configs and signatures.

`render` asks them before it writes, `check` is the tool around them. Codes by family: TG20x and TG21x syntax (the reader of configs), TG22x layout,
TG23x backends and names, TG24x versions, TG25x tensors, TG26x batching, TG27x queues and caches, TG28x instances, TG29x accelerators, TG30x parameters,
TG31x warmup, TG32x ensembles, TG33x sequences, TG34x ONNX models, TG35x plans, TG36x releases and profiles of plans, TG37x performance, TG38x security,
TG39x Python and vLLM models.
"""

from tritongen.rules import (
    accelerators,
    backends,
    batching,
    built_plans,
    ensembles,
    instances,
    layout,
    libraries,
    onnx_models,
    parameters,
    performance,
    plan_profiles,
    plans,
    python_models,
    queue,
    releases,
    repositories,
    security,
    sequences,
    tensors,
    versions,
    vllm,
    warmup,
)
from tritongen.rules.context import ModelContext, ModelFile, ServerFacts
from tritongen.rules.rule import Consequence, Edit, Finding, Rule

__all__ = ["RULES", "Consequence", "Edit", "Finding", "ModelContext", "ModelFile", "Rule", "ServerFacts"]

_FAMILIES = (
    layout,
    repositories,
    backends,
    versions,
    tensors,
    batching,
    queue,
    instances,
    accelerators,
    parameters,
    warmup,
    ensembles,
    sequences,
    onnx_models,
    plans,
    built_plans,
    releases,
    plan_profiles,
    performance,
    security,
    libraries,
    python_models,
    vllm,
)

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.RULES)
"""Every rule, in the order of the codes' families."""
