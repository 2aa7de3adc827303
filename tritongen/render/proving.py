"""Compare what a config claims with what ONNX Runtime found when it ran the model."""

from __future__ import annotations

from typing import Any

from tritongen.batching import Batching
from tritongen.proof import Proof
from tritongen.render.findings import Findings
from tritongen.spec import ModelSpec


def judge_proof(model: ModelSpec, config: Any, batching: Batching, proof: Proof, findings: Findings) -> None:
    """Turn a proof into findings: a sample that fails, an output whose dims Triton would not accept, a proof that could not run."""
    if proof.skipped:
        findings.advice(
            "TG140", ("source",), f"not proven: {proof.skipped}", consequence="a warmup sample that fails while it executes can crash the whole server"
        )
    for failure in proof.failures:
        if failure.batch_size == 0:
            findings.error(
                "TG141",
                ("source",),
                f"ONNX Runtime cannot load the model: {failure.reason}",
                consequence="Triton refuses to load it",
                hint="export the model again, or use a newer release",
            )
        else:
            hint = "give sizes that the model accepts in shapes:, values in samples:, or write warmup: none (`tritongen init` looks for sizes that run)"
            consequence = "a warmup that fails while it executes can crash the whole server"
            findings.error(
                "TG142", ("warmup",), f"the warmup sample of batch size {failure.batch_size} fails: {failure.reason}", consequence=consequence, hint=hint
            )
    if model.backend == "onnxruntime" and proof.output_dims is not None:
        _judge_dims(config, batching, proof, findings)


def _judge_dims(config: Any, batching: Batching, proof: Proof, findings: Findings) -> None:
    """Triton's backend compares a config with the shapes that ONNX Runtime infers, which may be tighter than the file's own (onnxruntime_backend
    `ValidateOutputs`).
    """
    assert proof.output_dims is not None
    assert proof.input_dims is not None
    for kind, inferred, tensors in (("input", proof.input_dims, config.input), ("output", proof.output_dims, config.output)):
        for tensor in tensors:
            if tensor.name not in inferred:
                continue
            dims = inferred[tensor.name]
            if batching.max_batch_size and (not dims or dims[0] != -1):
                message = f"the model cannot batch: ONNX Runtime infers {list(dims)} for {kind} '{tensor.name}'"
                consequence = "Triton refuses max_batch_size above 0 for it"
                findings.error(
                    "TG143",
                    ("batching",),
                    message,
                    consequence=consequence,
                    hint="write batching: none, or export the model with a variable first axis everywhere",
                )
                continue
            stated = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else tuple(tensor.dims)
            wanted = (dims[1:] if batching.max_batch_size else dims) or (() if tensor.HasField("reshape") else (1,))
            if not _accepted(kind, stated, wanted):
                message = f"{kind} '{tensor.name}' has dims {list(stated)} in its config, and ONNX Runtime infers {list(wanted)}"
                hint = f"add config: {{{kind}: [{{name: {tensor.name}, dims: {list(wanted)}}}]}}"
                findings.error("TG144", ("source",), message, consequence="Triton refuses to load the model", hint=hint)


def _accepted(kind: str, stated: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Outputs must be equal; an input may be narrower than the model."""
    if kind == "output":
        return stated == wanted
    return len(stated) == len(wanted) and all(want in (-1, state) for state, want in zip(stated, wanted, strict=True))
