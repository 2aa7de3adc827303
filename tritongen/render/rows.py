"""The proof that the rows of a batch stay apart: for which models and sizes it is made, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritongen.batching import Batching
from tritongen.render.findings import Findings, Key
from tritongen.rewrite import BatchProof
from tritongen.samples import Array
from tritongen.signature import Signature
from tritongen.spec import ModelSpec


def proof_sizes(model: ModelSpec, batching: Batching) -> tuple[int, ...]:
    """The batch sizes at which the rows of a model are compared with each row alone; none where there is nothing to prove, or nobody wants it proved.

    None for ragged inputs, whose items are no rows.
    """
    most = max(batching.max_batch_size, 3) if model.rebatch and batching.max_batch_size else batching.max_batch_size
    if model.prove is False or model.ragged is not None or most < 2:
        return ()
    return tuple(sorted({size for size in (1, 2, 3, most) if size <= most}))


def is_demanded(model: ModelSpec) -> bool:
    """Whether the model must not be served without a proof of its batch axis: a rewritten axis is a claim of ours."""
    return model.prove is True or (model.rebatch and model.prove is not False)


def unsized(model: ModelSpec, signature: Signature, samples: Mapping[str, Array]) -> list[str]:
    """The inputs of which the spec does not say how large an item is: a proof has to guess."""
    variable = (tensor for tensor in signature.inputs if any(not isinstance(dim, int) for dim in (tensor.shape or ())[1:]))
    return [tensor.describe() for tensor in variable if tensor.name not in model.known_shapes and tensor.name not in samples]


def judge_batch(model: ModelSpec, key: Key, found: BatchProof, guessed: Sequence[str], findings: Findings) -> None:
    """Turn the proof of a batch axis into findings: rows that are wrong are errors; a proof that could not run is one where it is demanded.

    Args:
        model: what the spec says.
        key: the key of the spec that names the model file.
        found: the proof.
        guessed: inputs whose sizes were guessed. A wrong guess may mix rows as well as fail, so that it is no evidence against a model.
        findings: receives them.
    """
    unproven = found.skipped or found.single_row_fails or "; ".join(f"a batch of {size} was not run: {why}" for size, why in found.not_run.items())
    if guessed and found.failures:
        unproven = f"the size of {', '.join(guessed)} is not known, and with a guess, {found.failures[0].sentence}"
    if unproven and is_demanded(model):
        findings.error(
            "TG196",
            ("rebatch",) if model.rebatch else ("prove",),
            f"the batch axis cannot be proved: {unproven}",
            consequence="a batch axis that is none gives clients wrong answers, without a word",
            hint="give sizes in shapes: and values in samples: that the model accepts, raise --prove-limit, or write prove: false to serve it unproven",
        )
    elif unproven:
        findings.advice("TG163", key, f"the batch axis is not proven: {unproven}", consequence="a batch axis can be a lie that only a run shows")
    if found.single_row_fails or guessed:
        return
    said: set[tuple[str, str]] = set()
    for failure, what in zip(found.failures, found.diagnostics, strict=False):
        if (failure.code, failure.output) in said:
            continue
        said.add((failure.code, failure.output))
        hint = f"{what.hint}, or write prove: false where you know better" if failure.code == "TG162" and not failure.is_rounding else what.hint
        add = findings.warning if failure.is_rounding else findings.error
        add(failure.code, ("rebatch",) if model.rebatch else ("batching",), what.message, consequence=what.consequence, hint=hint)


def judge_unproven(model: ModelSpec, batching: Batching, findings: Findings) -> None:
    """What the keys about proofs come to where no proof is made for their sake."""
    silent = "a rewritten batch axis that is none gives clients wrong answers, without a word"
    if model.rebatch and model.prove is False:
        message = f"rebatch ({findings.locate(('rebatch',))}) is not proved, since prove is false"
        findings.warning("TG163", ("prove",), message, consequence=silent, hint="remove prove: false")
    elif model.rebatch and model.ragged is not None:
        message = (
            f"the batch axis cannot be proved: with ragged ({findings.locate(('ragged',))}) an input's rows are strung together, and axis 0 counts elements"
        )
        findings.error("TG196", ("rebatch",), message, consequence=silent, hint="remove rebatch: a ragged model is exported for strung inputs")
    elif model.prove is True and not proof_sizes(model, batching):
        why = "the model does not batch" if not batching.max_batch_size else "no row stands beside another"
        findings.idle(("prove",), f"prove has no effect: {why}", hint="remove prove")
