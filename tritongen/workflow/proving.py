"""The files of a model, run once in ONNX Runtime: their warmup samples, then their rows, each file by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritongen.diagnostics import Severity
from tritongen.proof import Proof, prove
from tritongen.render import Compiled, Findings
from tritongen.render.judging import ProvenFile
from tritongen.render.precision import judge_agreement
from tritongen.render.proving import judge_proof
from tritongen.render.rewriting import checked_inputs
from tritongen.render.rows import is_demanded, judge_batch, proof_sizes, unsized
from tritongen.rewrite import BatchProof, compare, prove_batch
from tritongen.rewrite.batchproof import TOLERANCE
from tritongen.rewrite.running import COARSE
from tritongen.samples import Array
from tritongen.spec import ModelSpec
from tritongen.workflow.preparing import Prepared


def prove_files(
    model: ModelSpec, compiled: Compiled, prepared: Mapping[int, Prepared], samples: Mapping[str, Array], prove_limit_bytes: int, findings: Findings
) -> dict[int, ProvenFile]:
    """Run every version's file, and say what came of it. Nothing is run where there are errors already; a version that fails does not hide another's faults.

    Args:
        model: what the spec says.
        compiled: its config, with the warmup samples.
        prepared: the files by version.
        samples: the spec's values for inputs, as arrays of one item each.
        prove_limit_bytes: files above this size are not run.
        findings: receives what is wrong and what could not be run.
    """
    if findings.has_errors:
        return {version: ProvenFile(file.signature, file.path, Proof(skipped="there were errors before")) for version, file in prepared.items()}
    proven = {}
    for version, file in prepared.items():
        own = findings.saying(f"version {version}: ") if model.sources else findings
        said = len(findings.found)
        proof = prove(file.path, compiled.feeds, limit_bytes=prove_limit_bytes, external=file.external)
        judge_proof(model, file.key, file.signature, compiled.config, compiled.batching, proof, own)
        sizes = proof_sizes(model, compiled.batching)
        if sizes and not any(found.severity is Severity.ERROR for found in findings.found[said:]):
            _prove_rows(model, file, proof, sizes, samples, prove_limit_bytes, own)
        if file.recipe.convert is not None and model.conversion.compare and not any(found.severity is Severity.ERROR for found in findings.found[said:]):
            _compare(model, file, compiled, samples, prove_limit_bytes, own)
        proven[version] = ProvenFile(file.signature, file.path, proof)
    return proven


def _prove_rows(
    model: ModelSpec, file: Prepared, proof: Proof, sizes: Sequence[int], samples: Mapping[str, Array], prove_limit_bytes: int, findings: Findings
) -> None:
    reason = next((reason for reason in (proof.skipped, *(failure.reason for failure in proof.failures), *proof.not_run.values()) if reason), "")
    if reason and not is_demanded(model):
        return  # the proof of the samples has said why nothing runs here
    if proof.skipped or proof.failures:
        judge_batch(model, file.key, BatchProof(file.path, skipped=reason), (), findings)
        return
    # With FP16 inside, rows may differ by what that resolves; how near it is to its source is compared below, by a measure of its own.
    tolerance = COARSE["float16"] if file.recipe.convert is not None else model.optimize.tolerance if model.optimize else 0
    found = prove_batch(
        file.path,
        sizes=sizes,
        shapes={name: shape.opt for name, shape in model.known_shapes.items()},
        samples=samples,
        tolerance=max(TOLERANCE, tolerance),
        original=file.source if file.recipe.rebatch and file.recipe.convert is None else None,
        limit_bytes=prove_limit_bytes,
    )
    judge_batch(model, file.key, found, unsized(model, file.signature, samples), findings)


def _compare(model: ModelSpec, file: Prepared, compiled: Compiled, samples: Mapping[str, Array], prove_limit_bytes: int, findings: Findings) -> None:
    """Hold a converted file against its source, at the batch sizes that are warmed up."""
    sizes = compiled.batching.warmed if compiled.batching.max_batch_size and model.ragged is None else ()
    shapes: Mapping[str, tuple[int, ...]] = {name: shape.opt for name, shape in model.known_shapes.items()}
    values: Mapping[str, object] = samples
    if not sizes:
        shapes, values = checked_inputs(model, file.signature, samples)
    found = compare(file.source, file.path, sizes=sizes, shapes=shapes, samples=values, limit_bytes=prove_limit_bytes)
    judge_agreement(model, found, findings, waived=not prove_limit_bytes)
