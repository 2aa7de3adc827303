"""What models are estimated to take of each GPU, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tritongen.diagnostics import Diagnostic
from tritongen.errors import TritongenError
from tritongen.memory import Estimate, GpuEstimate, ModelEstimate, Share
from tritongen.memory.estimate import CONTEXT_BYTES, HANDLES_BYTES, MOST_BATCH
from tritongen.report.outcome import outcome_json
from tritongen.spec.units import about_size

_COLUMNS = ("model", "copies", "batch", "weights", "activations", "scratch", "handles", "total", "largest batch that fits")

ASSUMPTIONS = (
    "Nothing is run. A tensor has memory of its own from the node that makes it to the last one that reads it; runtimes compute in place, and need less.",
    "Scratch is as much as the inputs and results of the largest node, for kernels that lay data out anew, or what the spec bounds it to.",
    "A session of ONNX Runtime has its own weights, and an arena that grows by powers of two: twice the activations, unless it grows as requested.",
    "Copies of a plan share its weights where it has no profile, and have activations of their own for each profile that they use.",
    f"CUDA takes {about_size(CONTEXT_BYTES)} of each GPU, and {about_size(HANDLES_BYTES)} for the handles of each copy.",
    "While engines are built, TensorRT needs more.",
)
"""What the figures rest on."""


def format_estimate(estimate: Estimate) -> str:
    """A table for each GPU, what is not known, and what the figures rest on."""
    lines: list[str] = []
    for gpu in estimate.gpus:
        lines += [*_gpu(gpu, estimate), ""]
    on_cpu = [model.name for model in estimate.models if not model.placements]
    if on_cpu:
        lines += [f"On the CPU, and in no GPU's memory: {', '.join(on_cpu)}.", ""]
    unknown = [
        f"Not known of {model.name}: {each}. It takes more than is counted here." for model in estimate.models if model.placements for each in model.unknown
    ]
    lines += [*unknown, ""] if unknown else []
    if estimate.memory is None and estimate.gpus:
        lines += ["No memory is named: with triton: {gpu_memory: 24GiB} in the spec, or --gpu-memory 24GiB, it is said what fits.", ""]
    lines += ["This is an estimate:", *(f"- {each}" for each in ASSUMPTIONS)]
    return "\n".join(lines) + "\n"


def _gpu(gpu: GpuEstimate, estimate: Estimate) -> Iterator[str]:
    name = estimate.name_of(gpu)
    total = f"{'' if estimate.is_complete else 'at least '}{about_size(gpu.total)}"
    if estimate.memory is None:
        yield f"{name}: {total}"
    elif gpu.total <= estimate.memory:
        yield f"{name}: {total} of {about_size(estimate.memory)}; it fits" + ("" if estimate.is_complete else " as far as is known")
    else:
        yield f"{name}: {total} of {about_size(estimate.memory)}; it does not fit"
    rows = [_COLUMNS, *(_row(model, gpu.shares[model.name], estimate) for model in estimate.models if model.name in gpu.shares)]
    if estimate.memory is None:
        rows = [row[:-1] for row in rows]
    yield from _table(rows)


def _row(model: ModelEstimate, share: Share, estimate: Estimate) -> tuple[str, ...]:
    parts = (share.weights, share.activations, share.scratch, share.handles, share.total)
    return (model.name, str(share.copies), str(model.batch) if model.batch else "-", *map(about_size, parts), _fits(estimate.largest.get(model.name)))


def _fits(batch: int | None) -> str:
    return "-" if batch is None else "none" if not batch else f"{batch} or more" if batch == MOST_BATCH else str(batch)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def estimate_json(result: Estimate | TritongenError, findings: Iterable[Diagnostic] = ()) -> str:
    """The same as JSON, all sizes in bytes; null for what is not known or not asked. Keys are never left out, also where an error ended the run."""
    if isinstance(result, TritongenError):
        whole = outcome_json(findings, result) | dict.fromkeys(("memory", "fits", "complete")) | {"gpus": [], "models": [], "assumptions": list(ASSUMPTIONS)}
    else:
        whole = outcome_json(findings) | _plain(result)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _plain(estimate: Estimate) -> dict[str, Any]:
    models = [
        {
            "name": model.name,
            "batch": model.batch,
            "weights": model.footprint.weights,
            "activations": model.footprint.activations if model.at else None,
            "scratch": model.footprint.scratch if model.at else None,
            "peak": model.footprint.peak if model.at else None,
            "largest_batch": estimate.largest.get(model.name),
            "unknown": list(model.unknown),
        }
        for model in estimate.models
    ]
    gpus = [
        {
            "gpu": gpu.gpu,
            "total": gpu.total,
            "context": CONTEXT_BYTES if gpu.shares else 0,
            "fits": _verdict(estimate, gpu.total <= (estimate.memory or 0)),
            "models": {name: vars(share) | {"total": share.total} for name, share in gpu.shares.items()},
        }
        for gpu in estimate.gpus
    ]
    return {
        "memory": estimate.memory,
        "fits": _verdict(estimate, estimate.fits),
        "complete": estimate.is_complete,
        "gpus": gpus,
        "models": models,
        "assumptions": list(ASSUMPTIONS),
    }


def _verdict(estimate: Estimate, known_fits: bool) -> bool | None:
    """Whether it fits: not known where nobody said into what, and where what is left out of the count may be what does not."""
    if estimate.memory is None or (known_fits and not estimate.is_complete):
        return None
    return known_fits
