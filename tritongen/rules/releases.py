"""Rules: what the release of the server has not, or has broken. Backends that it lacks are in `backends`, onnxruntime's operator sets in `onnx_models`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.dtypes import from_config
from tritongen.known_issues import find_issue, issues_of
from tritongen.releases import find_release
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_BF16 = "TYPE_BF16"
_BF16_NUMBER = from_config(_BF16).config_value
_WITHOUT_BF16 = find_issue("no-bf16-tensors")
_UNUSED_GRAPHS = find_issue("graphs-without-batching")


def _late_fields(context: ModelContext) -> Iterator[Finding]:
    release = context.server.release
    assert release is not None
    for issue in issues_of(release):
        if issue.field and _is_set(context.config, issue.field):
            yield Finding(f"in release {release.name} {issue.text}, and a config with an unknown field does not parse", issue.field, issue.advice)


def _is_set(message: Any, path: Key) -> bool:
    for name in path:
        if not any(field.name == name for field, _ in message.ListFields()):
            return False
        message = getattr(message, str(name))
    return True


def _bf16(context: ModelContext) -> Iterator[Finding]:
    release = context.server.release
    assert release is not None
    if not context.is_onnx or not _WITHOUT_BF16.holds_in(release):
        return
    signature = context.signature
    known = {tensor.name: tensor.dtype.config for tensor in (*signature.inputs, *signature.outputs)} if signature is not None else {}
    for role in ("input", "output"):
        for index, tensor in enumerate(getattr(context.config, role)):
            # A tensor that the model does not have, or has in another type, is another mistake.
            if tensor.data_type == _BF16_NUMBER and (signature is None or known.get(tensor.name) == _BF16):
                yield Finding(_words(role, tensor.name, release.name), (role, index, "data_type"), _WITHOUT_BF16.advice)
    if signature is None or not context.server.auto_complete:
        return
    for role, given, tensors in (("input", context.config.input, signature.inputs), ("output", context.config.output, signature.outputs)):
        for spec in () if given else tensors:
            if spec.dtype.config == _BF16:
                yield Finding(_words(role, spec.name, release.name), (), _WITHOUT_BF16.advice)


def _words(role: str, name: str, release: str) -> str:
    return f"{role} '{name}' is {_BF16}; in release {release} {_WITHOUT_BF16.text}"


def _unused_graphs(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    # Where nobody names a release, it is the one that the repository was rendered for.
    release = context.server.release or next((find_release(recipe.release) for recipe in context.recipes), None)
    # Of a plan with shape tensors none is captured, in any release: another rule's.
    is_asked = context.is_plan and config.optimization.cuda.graphs and not any(each.is_shape_tensor for each in config.input)
    # Auto-complete takes a 0 for no word about batching, but where dims are given in full, as a render gives them.
    is_unbatched = config.max_batch_size == 0 and (not context.server.auto_complete or bool(context.recipes))
    if is_asked and is_unbatched and release is not None and _UNUSED_GRAPHS.holds_in(release):
        message = f"in release {release.name} {_UNUSED_GRAPHS.text}"
        yield Finding(message, ("optimization", "cuda", "graphs"), _UNUSED_GRAPHS.advice, follows="kernels are launched one by one, as without graphs")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG360",
        "field-unknown-to-release",
        Consequence.REFUSED,
        "A config has only fields that the server's release knows.",
        "Triton's parser refuses a file with a field that it does not know, whatever its value. max_inflight_requests came with 25.12 "
        "(model_config.proto of the release branches); "
        "model_metrics is not in 24.10 (both tried there).",
        "ensemble_scheduling { max_inflight_requests: 4 ... }  # --release 25.08",
        "ensemble_scheduling { ... }",
        check=_late_fields,
        needs=frozenset({"config", "release"}),
    ),
    Rule(
        "TG361",
        "bf16-in-older-onnxruntime",
        Consequence.REFUSED,
        "Inputs and outputs of type BF16 need an onnxruntime backend of 26.03 or newer.",
        "'unsupported datatype TYPE_BF16' (onnxruntime_backend/src/onnxruntime_utils.cc: the type is in the table since r26.03; recorded on 24.10).",
        'backend: "onnxruntime"\ninput [ { name: "x" data_type: TYPE_BF16 dims: [64] } ]  # --release 25.08',
        'backend: "onnxruntime"\ninput [ { name: "x" data_type: TYPE_FP16 dims: [64] } ]',
        check=_bf16,
        needs=frozenset({"release"}),
    ),
    Rule(
        "TG362",
        "cuda-graph-in-a-broken-release",
        Consequence.IGNORED,
        "CUDA graphs of a plan without batching need a release that uses them: 26.08 or newer.",
        "A graph is kept under its batch size, 0 where max_batch_size is, and looked for under that of the request, 1 "
        "(tensorrt_backend/src/instance_state.cc, SetCudaGraphShape and Run; triton-inference-server/server issue 7150). "
        "Mended by tensorrt_backend pull request 125, of July 2026.",
        '# --release 25.08\nplatform: "tensorrt_plan"\nmax_batch_size: 0\noptimization { cuda { graphs: true } }',
        '# --release 26.08\nplatform: "tensorrt_plan"\nmax_batch_size: 0\noptimization { cuda { graphs: true } }',
        check=_unused_graphs,
    ),
)
