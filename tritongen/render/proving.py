"""Compare what a config claims with what ONNX Runtime found when it ran the model."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from tritongen.batching import Batching
from tritongen.proof import Proof
from tritongen.render.findings import Findings, Key
from tritongen.render.ragged import strung, wrong_cuts
from tritongen.rules.ortload.limits import limits_of, too_new
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.templating import yaml_flow

_RISK = "a warmup sample that fails while it executes can crash the whole server"


def judge_proof(model: ModelSpec, key: Key, signature: Signature, config: Any, batching: Batching, proof: Proof, findings: Findings) -> None:
    """Turn a proof into findings: a sample that fails, rows that are none, an output whose dims Triton would not accept, a proof that could not run.

    `key`: the key of the spec that names the model file.
    """
    if proof.skipped:
        findings.advice("TG140", key, f"not proven: {proof.skipped}", consequence=_RISK)
    for size, reason in proof.not_run.items():
        findings.advice("TG140", ("warmup",), f"the warmup sample of batch size {size} is not proven: {reason}", consequence=_RISK)
    for failure in proof.failures:
        if failure.batch_size == 0:
            _judge_load(model, key, signature, failure.reason, findings)
        else:
            message = f"the warmup sample of batch size {failure.batch_size} fails: {failure.reason}"
            hint = "give sizes that the model accepts in shapes:, values in samples:, or write warmup: none (`tritongen init` looks for sizes that run)"
            findings.error("TG142", ("warmup",), message, consequence=_RISK, hint=hint)
    if batching.max_batch_size:
        for message in wrong_rows(proof, apart=strung(model)):
            consequence = "NVIDIA's backend hands out an output's rows by the rows of the requests: clients would get each other's answers"
            hint = "write batching: none, or export the model so that axis 0 of every output is the batch"
            findings.error("TG145", ("batching",), message, consequence=consequence, hint=hint)
        for place, message in wrong_cuts(model, config, proof):
            consequence = "NVIDIA's backend cuts by the lengths of the requests all the same: clients would get each other's answers, or other memory"
            findings.error(
                "TG404", place, message, consequence=consequence, hint="remove the output from batch_outputs, or export it with a value for each element"
            )
    if model.backend == "onnxruntime" and proof.output_dims is not None:
        _judge_dims(model, key, config, batching, proof, findings)


def wrong_rows(proof: Proof, *, apart: Container[str] = ()) -> Iterator[str]:
    """A sentence for every output that has not one row for each row of the request; one for each output, at the first batch size where it shows.

    `apart`: outputs that are not handed out by rows.
    """
    said: set[str] = set()
    for size, outputs in sorted(proof.rows.items()):
        for name, count in outputs.items():
            if count != size and name not in said and name not in apart:
                said.add(name)
                yield f"output '{name}' has {count or 'no'} rows for a request of {size}: its first axis is not the batch"


def why_not_loadable_here(signature: Signature) -> str:
    """Why this machine's ONNX Runtime may refuse what the server's would load; empty where it is no excuse."""
    import onnxruntime

    if signature.custom_domains:
        return f"it has operators of {', '.join(sorted(signature.custom_domains))}, which come from a library of your own"
    limits = limits_of(onnxruntime.__version__)
    problems = list(too_new(signature.opsets, signature.ir_version, limits)) if limits is not None else []
    return f"it is too new for the onnxruntime {onnxruntime.__version__} here" if problems else ""


def _judge_load(model: ModelSpec, key: Key, signature: Signature, reason: str, findings: Findings) -> None:
    excuse = why_not_loadable_here(signature)
    if not excuse:
        hint = "export the model again; --prove-limit 0 renders it without a proof"
        findings.error("TG141", key, f"ONNX Runtime cannot load the model: {reason}", consequence="Triton refuses to load it", hint=hint)
        return
    hint = ""
    if signature.custom_domains and not model.op_libraries and "model_operations" not in model.config:
        hint = "name the library that has them, as it is called on the server: op_libraries: [/opt/ops/libmy_ops.so]; without it Triton refuses the model"
    findings.advice("TG140", key, f"not proven: {excuse} ({reason})", consequence=_RISK, hint=hint)


def _judge_dims(model: ModelSpec, source: Key, config: Any, batching: Batching, proof: Proof, findings: Findings) -> None:
    """Triton's backend compares a config with the shapes that ONNX Runtime infers, which may be tighter than those that could be inferred without it
    (onnxruntime_backend `ValidateOutputs`).
    """
    assert proof.output_dims is not None
    assert proof.input_dims is not None
    tighter: dict[str, dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for kind, inferred, tensors in (("input", proof.input_dims, config.input), ("output", proof.output_dims, config.output)):
        for tensor in tensors:
            if tensor.name not in inferred or tensor.name in strung(model):
                continue
            dims = inferred[tensor.name]
            if batching.max_batch_size and (not dims or dims[0] != -1):
                message = f"the model cannot batch: ONNX Runtime infers {list(dims)} for {kind} '{tensor.name}'"
                consequence = "Triton refuses max_batch_size above 0 for it"
                hint = "write batching: none, or export the model with a variable first axis everywhere"
                findings.error("TG143", ("batching",), message, consequence=consequence, hint=hint)
                continue
            stated = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else tuple(tensor.dims)
            wanted = (dims[1:] if batching.max_batch_size else dims) or (() if tensor.HasField("reshape") else (1,))
            if not _accepted(kind, stated, wanted):
                tighter.setdefault(kind, {})[tensor.name] = stated, wanted
    _say_tighter(model, source, tighter, findings)


def _say_tighter(model: ModelSpec, source: Key, tighter: Mapping[str, Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]], findings: Findings) -> None:
    """One finding for each tensor that the overlay states otherwise, at its entry; one for all the others, whose remedy is one overlay.

    `tighter`: kind → tensor → the dims of the config and those that ONNX Runtime infers.
    """
    said: list[str] = []
    missing: dict[str, list[dict[str, object]]] = {}
    refused = "Triton refuses to load the model"
    for kind, tensors in tighter.items():
        for name, (stated, wanted) in tensors.items():
            message = f"{kind} '{name}' has dims {list(stated)} in its config, and ONNX Runtime infers {list(wanted)}"
            place = _overlaid_dims(model, kind, name)
            if place:
                findings.error("TG144", place, message, consequence=refused, hint=f"write dims: {list(wanted)}, or remove them")
            else:
                said.append(message)
                missing.setdefault(kind, []).append({"name": name, "dims": list(wanted)})
    if not said:
        return
    if not model.config:
        hint = f"add config: {yaml_flow(missing)}"
    else:
        parts = (f"{kind}: {yaml_flow(entries)}" for kind, entries in missing.items())
        hint = f"add to config, at {findings.locate(('config',))}: {'; '.join(parts)}"
        hint += " (an entry beside those that are there, where the list is there already)" if missing.keys() & model.config.keys() else ""
    findings.error("TG144", source, "; ".join(said), consequence=refused, hint=hint)


def _overlaid_dims(model: ModelSpec, kind: str, name: str) -> Key:
    """Where the overlay states dims for a tensor; empty where it does not."""
    entries = model.config.get(kind)
    for index, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if isinstance(entry, Mapping) and entry.get("name") == name and "dims" in entry:
            return ("config", kind, index, "dims")
    return ()


def _accepted(kind: str, stated: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Outputs must be equal; an input may be narrower than the model."""
    if kind == "output":
        return stated == wanted
    return len(stated) == len(wanted) and all(want in (-1, state) for state, want in zip(stated, wanted, strict=True))
