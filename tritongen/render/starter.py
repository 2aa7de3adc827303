"""A first spec for a model that nobody has described yet: sizes that were seen to run, and a reason where none was found."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tritongen.batching import DEFAULT_MAX_BATCH_SIZE, batch_blockers
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import ModelFileError
from tritongen.proof import DEFAULT_LIMIT_BYTES, Proof, RuntimeErrors, open_session, prove_session, reason_of, why_not_provable
from tritongen.render.guess import Guess, guesses
from tritongen.render.proving import why_not_loadable_here, wrong_rows
from tritongen.rewrite import prove_batch, rebatch, rewritten_in
from tritongen.samples import Feed, as_array
from tritongen.signature import Signature
from tritongen.templating import environment

if TYPE_CHECKING:
    import onnxruntime

_MOST_GUESSES = 96
_MOST_SECONDS = 60.0
_PROVED = (1, 2, 3, DEFAULT_MAX_BATCH_SIZE)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.+-]+")


@dataclass(frozen=True)
class Starter:
    """What a starter spec says about one model.

    Attributes:
        name: the model's name.
        source: the path as the spec will state it.
        signature: its interface.
        batched: requests are put together; False is written as `batching: none` where the file alone would allow it.
        why_not_batched: the reason, for a comment.
        rebatched: the batch sizes at which the model was proved after `rebatch`; empty where that is not possible, or the batch is not one row.
        shapes: sizes that ran, for inputs with variable dimensions, without the batch.
        samples: values that ran.
        output_dims: dims to overlay, for outputs whose shape ONNX Runtime infers tighter than the file states it.
        todo: why no warmup sample could be made; empty where one ran, or none had to be guessed.
        untried: why nothing could be tried here; empty where ONNX Runtime ran the model.
    """

    name: str
    source: str
    signature: Signature
    batched: bool
    batching_none: bool = False
    why_not_batched: str = ""
    rebatched: tuple[int, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    samples: Mapping[str, int] = field(default_factory=dict)
    output_dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    todo: str = ""
    untried: str = ""


def model_name(path: Path, taken: Sequence[str]) -> str:
    """A model name that Triton accepts, from the file's name; numbered where it is taken already, whatever the letter case."""
    base = _NOT_IN_NAMES.sub("_", path.stem).lstrip("._+-") or "model"
    used = {name.casefold() for name in taken}
    return next(name for name in itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2))) if name.casefold() not in used)


def explore(path: Path, signature: Signature, *, name: str, source: str, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Starter:
    """Try sizes in ONNX Runtime until a sample of every warmed batch size runs, with an output row for every row.

    Raises ModelFileError where ONNX Runtime refuses the model.
    """
    session, loaded, untried = _load(path, signature, limit_bytes)
    blockers = batch_blockers(signature)
    inferred = _inferred_blocker(loaded) if not blockers else ""
    batched = not blockers and not inferred
    reason, guess, lie = "", None, ""
    if session is not None:
        reason, guess = _search(session, signature, batched=batched)
        mixed = _mixed_rows(path, signature, guess, limit_bytes) if batched and guess is not None else ""
        if batched and (guess is None or mixed):
            _, single = _search(session, signature, batched=False)
            if single is not None:
                lie, reason, guess, batched = mixed or reason, "", single, False
    dynamic = {tensor.name for tensor in signature.inputs if any(not isinstance(dim, int) for dim in (tensor.shape or ())[1 if batched else 0 :])}
    return Starter(
        name=name,
        source=source,
        signature=signature,
        batched=batched,
        batching_none=not batched and not blockers,
        why_not_batched="; ".join(blockers) or inferred or lie,
        rebatched=_rebatched(path, signature, guess, limit_bytes) if blockers and guess is not None else (),
        shapes={tensor: shape for tensor, shape in guess.shapes.items() if tensor in dynamic} if guess else {},
        samples=guess.samples if guess else {},
        output_dims=_tighter_outputs(signature, loaded, batched=batched),
        todo=reason if session is not None and guess is None else untried if dynamic else "",
        untried=untried,
    )


def _mixed_rows(path: Path, signature: Signature, guess: Guess, limit_bytes: int) -> str:
    """How a row of a batch gets another answer than alone, in one sentence; empty where it does not."""
    samples = {name: as_array(value, signature.input(name).dtype, guess.shapes[name]) for name, value in guess.samples.items()}
    proof = prove_batch(path, sizes=_PROVED, shapes=guess.shapes, samples=samples, limit_bytes=limit_bytes)
    if proof.single_row_fails:
        return ""
    return next((failure.sentence for failure in proof.failures if not failure.is_rounding), "")


def _rebatched(path: Path, signature: Signature, guess: Guess, limit_bytes: int) -> tuple[int, ...]:
    """The batch sizes at which the model is right once its batch of one row is made variable; empty where a fixed batch of 1 is not all that is in the way."""
    if any(not tensor.shape or tensor.shape[0] != 1 for tensor in (*signature.inputs, *signature.outputs)):
        return ()
    items = {name: shape[1:] for name, shape in guess.shapes.items()}
    samples = {name: as_array(value, signature.input(name).dtype, guess.shapes[name]) for name, value in guess.samples.items()}
    with tempfile.TemporaryDirectory(prefix="tritongen-init-") as folder:
        try:
            done = rewritten_in(Path(folder), path, rebatch)
            proof = prove_batch(done.path, sizes=_PROVED, shapes=items, samples=samples, original=path, limit_bytes=limit_bytes)
        except ModelFileError:
            return ()
    return proof.sizes if proof.proven else ()


def _inferred_blocker(proof: Proof) -> str:
    for kind, dims in (("input", proof.input_dims or {}), ("output", proof.output_dims or {})):
        for name, shape in dims.items():
            if not shape or shape[0] != -1:
                return f"ONNX Runtime infers {list(shape)} for {kind} '{name}'"
    return ""


def _load(path: Path, signature: Signature, limit_bytes: int) -> tuple[onnxruntime.InferenceSession | None, Proof, str]:
    """A session and what it says of the model's border; or no session, and why nothing can be tried here.

    Raises ModelFileError where ONNX Runtime refuses the model, and the server's would too.
    """
    skipped = why_not_provable(path, limit_bytes=limit_bytes, external=[part.location for part in signature.external_data])
    if skipped:
        return None, Proof(skipped=skipped), skipped
    try:
        session = open_session(path)
    except RuntimeErrors() as error:
        excuse = why_not_loadable_here(signature)
        if excuse:
            return None, Proof(skipped=excuse), f"{excuse} ({reason_of(error)})"
        message = f"ONNX Runtime cannot load the model: {reason_of(error)}"
        raise ModelFileError([Diagnostic("TG141", message, Location(str(path)), "Triton refuses to load it", "export the model again")]) from error
    return session, prove_session(session, {}), ""


def _search(session: onnxruntime.InferenceSession, signature: Signature, *, batched: bool) -> tuple[str, Guess | None]:
    """The first guess that runs at batch size 1 and, where the model batches, at the default maximum; else the reason that the first guess failed for."""
    reason = "no size could be guessed"
    start = time.monotonic()
    for number, guess in enumerate(itertools.islice(guesses(signature, batched=batched), _MOST_GUESSES)):
        if number and time.monotonic() - start > _MOST_SECONDS:
            break
        problem = _try(session, signature, guess, batched=batched)
        if not problem:
            return "", guess
        if number == 0:
            reason = problem
    return reason, None


def _try(session: onnxruntime.InferenceSession, signature: Signature, guess: Guess, *, batched: bool) -> str:
    """Run a guess; what is wrong with it, or nothing."""
    values = {name: as_array(value, signature.input(name).dtype, guess.shapes[name]) for name, value in guess.samples.items()}
    made = {tensor.name: (tensor.dtype, guess.shapes[tensor.name]) for tensor in signature.inputs if tensor.name not in values}
    sizes: tuple[int | None, ...] = (1, DEFAULT_MAX_BATCH_SIZE) if batched else (None,)
    proof = prove_session(session, {size or 1: Feed(values, made, size) for size in sizes})
    if proof.failures:
        return proof.failures[0].reason
    if proof.not_run:
        return next(iter(proof.not_run.values()))
    return next(wrong_rows(proof), "") if batched else ""


def _tighter_outputs(signature: Signature, proof: Proof, *, batched: bool) -> dict[str, tuple[int, ...]]:
    """Triton compares a config with what ONNX Runtime infers, so an output that it knows better than the file must be stated its way."""
    known = proof.output_dims or {}
    stated = {tensor.name: () if tensor.shape is None else tensor.dims for tensor in signature.outputs}
    return {name: dims[1 if batched else 0 :] or (1,) for name, dims in known.items() if dims != stated.get(name, dims)}


def starter_spec(starters: Sequence[Starter], *, release: str) -> str:
    """The text of a commented spec for these models."""
    return environment().get_template("spec.yaml.j2").render(models=starters, release=release)
