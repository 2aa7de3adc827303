"""Rules: a config against its ONNX file. `onnx_files` has the rest of the family.

The verdicts are those of `ortload`, which the embedded backend applies as well; here they get codes, places and words for people.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from tritongen.rules import onnx_files
from tritongen.rules.context import ModelContext
from tritongen.rules.ortload import Kind, Problem
from tritongen.rules.rule import Consequence, Finding, Rule

_SOURCE = "onnxruntime_backend/src/onnxruntime.cc"
_RECORDED = "recorded by running NVIDIA's backend of release 24.10"

_NAMED = 10
"""How many names a message lists."""

Words = Callable[[ModelContext, Problem], Finding]


def _of(words: Words, *kinds: Kind) -> Callable[[ModelContext], Iterator[Finding]]:
    """A check that turns the problems of some kinds into findings."""

    def check(context: ModelContext) -> Iterator[Finding]:
        for problem in context.load_problems:
            if problem.kind in kinds:
                yield words(context, problem)

    return check


def _inputs(context: ModelContext) -> Iterator[Finding]:
    """Inputs that the config leaves out, but for those of which a misspelt name is there: that is another rule's."""
    missing = [problem for problem in context.load_problems if problem.kind is Kind.MISSING_INPUT]
    misspelt = {problem.name for problem in context.load_problems if problem.kind is Kind.UNKNOWN_INPUT}
    for problem in context.load_problems:
        if problem.kind is Kind.INPUT_COUNT:
            message = f"the config stands for {problem.found} inputs, controls and states counted, and the model has {problem.expected}"
            yield Finding(message, problem.path, "let every input of the model come from exactly one of input, batch_input, control_input and state")
        elif problem.kind is Kind.NO_OUTPUT:
            hint = "list the outputs, or start the server without --disable-auto-complete-config"
            # A warmup is a request that is sent while loading.
            outcome = Consequence.REFUSED if context.config.model_warmup else Consequence.FAILS
            yield Finding(f"the config lists no output, so every request fails: {problem.message}", ("output",), hint, consequence=outcome)
    for problem in missing:
        near = difflib.get_close_matches(problem.name, misspelt, n=1, cutoff=0.5) or (sorted(misspelt) if len(missing) <= len(misspelt) else [])
        if near:
            misspelt.discard(near[0])
            continue
        tensor = next(tensor for file in context.models.values() if file.signature for tensor in file.signature.inputs if tensor.name == problem.name)
        written = _entry(problem.name, tensor.dtype.config, tensor.dims[1:] if context.config.max_batch_size > 0 else tensor.dims)
        consequence = None if problem.refused else Consequence.FAILS
        message = f"the model needs input '{tensor.describe()}', which the config does not list"
        yield Finding(message, problem.path, f"add input [ {written} ]", consequence=consequence)


def _entry(name: str, data_type: str, dims: tuple[int, ...]) -> str:
    return f'{{ name: "{name}" data_type: {data_type} dims: [ {", ".join(map(str, dims or (1,)))} ] }}'


def _name(context: ModelContext, problem: Problem) -> Finding:
    role = {Kind.UNKNOWN_INPUT: "input", Kind.UNKNOWN_OUTPUT: "output", Kind.CONTROL_NAME: "sequence control", Kind.STATE_NAME: "state tensor"}[problem.kind]
    known = _listed(problem.choices)
    free = [name for name in problem.choices if name not in _taken(context, _is_output(problem))]
    lower = {name.lower(): name for name in free}
    close = lower.get(problem.name.lower()) or next(iter(difflib.get_close_matches(problem.name, free, n=1)), "")
    if not close and len(free) == 1:
        close = free[0]
    if close:
        hint = f'did you mean {problem.path[-1]}: "{close}"?'
    elif free:
        hint = f"write one of {_listed(free)}, or remove the entry"
    else:
        hint = f"remove the entry, or export the model with it: the model has no {'output' if _is_output(problem) else 'input'} left for it"
    consequence = None if problem.refused else Consequence.FAILS
    return Finding(f"the model has no {role} '{problem.name}'; it has {known}", problem.path, hint, consequence=consequence)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(f"'{name}'" for name in names[:_NAMED]) or "none") + more


def _is_output(problem: Problem) -> bool:
    return problem.kind is Kind.UNKNOWN_OUTPUT or problem.path[-1] == "output_name"


def _taken(context: ModelContext, outputs: bool) -> set[str]:
    """The model's inputs, or outputs, that some entry of the config stands for already."""
    config, sequences = context.config, context.config.sequence_batching
    if outputs:
        return {tensor.name for tensor in config.output} | {state.output_name for state in sequences.state}
    targets = {name for batch in config.batch_input for name in batch.target_name}
    return targets | {tensor.name for tensor in (*config.input, *sequences.control_input)} | {state.input_name for state in sequences.state}


def _dtype(_context: ModelContext, problem: Problem) -> Finding:
    role = "sequence control" if problem.kind is Kind.CONTROL_DTYPE else str(problem.path[0])
    message = f"{role} '{problem.name}' is declared {problem.found}, and the model has {problem.expected}"
    if problem.kind is Kind.CONTROL_DTYPE:
        return Finding(message, problem.path, "use the *_false_true list (or data_type) of the model's type")
    return Finding(message, problem.path, f"write data_type: {problem.expected}")


def _dims(context: ModelContext, problem: Problem) -> Finding:
    if problem.kind is Kind.CONTROL_DIMS:
        message = f"the model's input '{problem.name}' has dims {problem.expected}, and a sequence control needs {problem.found} in each row"
        return Finding(message, problem.path, "export the model with a control input of one element a row")
    role, field = problem.path[0], problem.path[2]
    expected = f"[ {problem.expected[1:-1].replace(',', ', ')} ]"
    message = f"{role} '{problem.name}' has {field} {problem.found}, and the model has {problem.expected}"
    message += " behind the batch dimension" if context.config.max_batch_size > 0 else ""
    hint = f"write dims: {expected}" if field == "dims" else f"write reshape: {{ shape: {expected} }}"
    ranks = problem.found.count(",") - problem.expected.count(",")
    if role == "output" and not ranks and "-1" in problem.expected and "-1" not in problem.found:
        message += "; the backend compares outputs exactly, so a free dimension must be -1 in the config too"
        hint += ", or fix the shape in the ONNX file"
    elif not context.config.max_batch_size and problem.expected == f"[-1,{problem.found[1:]}":
        hint += ", or batch over the first dimension with max_batch_size: 8"
    elif context.config.max_batch_size and ranks == 1:
        hint += ": max_batch_size above 0 stands for the batch dimension, which dims leave out"
    return Finding(message, problem.path, hint)


def _batch_axis(context: ModelContext, problem: Problem) -> Finding:
    size = context.config.max_batch_size
    shape = problem.expected
    what = "has no dimension at all" if shape == "[]" else f"has the constant {shape[1:-1].split(',')[0]} as its first dimension"
    message = f"max_batch_size is {size}, and the model cannot batch: its tensor '{problem.name}' {what} (shape {shape}), where a free one is needed"
    hint = (
        f"write max_batch_size: 0 and the whole shapes in dims, the first dimension with them ({shape} here), or export the model with a free first dimension"
    )
    return Finding(message, problem.path, hint)


def _scalar(context: ModelContext, problem: Problem) -> Finding:
    if problem.kind is Kind.SCALAR_BATCH:
        message = f"output '{problem.name}' is a scalar in the model, and max_batch_size is {context.config.max_batch_size}: {problem.message}"
        hint = "write max_batch_size: 0 with the whole shapes in dims, or export the model with one value a row; a batch of 1 works, so a smoke test passes"
        return Finding(message, problem.path, hint, consequence=Consequence.FAILS)
    message = f"{problem.path[0]} '{problem.name}' is a scalar in the model (or its file states no shape), and the config has dims {problem.found}"
    return Finding(message, problem.path, "write dims: [ 1 ], without a reshape (served from release 23.10 on)")


def _special(context: ModelContext, problem: Problem) -> Finding:
    name = problem.name
    if problem.kind is Kind.OPTIONAL_WITH_BATCHING:
        message = f"input '{name}' is optional, and max_batch_size is {context.config.max_batch_size}: the backend takes optional inputs only without batching"
        return Finding(message, problem.path, "remove optional: true, or write max_batch_size: 0 with the whole shapes in dims")
    if problem.kind is Kind.REQUIRED_IS_OPTIONAL:
        return Finding(f"input '{name}' is optional in the config, and the model has no default for it", problem.path, "remove optional: true")
    if problem.kind is Kind.DEFAULT_NOT_OPTIONAL:
        message = f"input '{name}' has a default in the model, so that a request may leave it out, and the config requires it"
        return Finding(message, problem.path, "remove the entry (the default is used), or, with max_batch_size: 0, add optional: true")
    what = "optional: true" if problem.found else f"the shape {problem.expected} in the model"
    message = f"input '{name}' has allow_ragged_batch and {what}; the backend joins a ragged batch to one input of shape [-1]"
    return Finding(message, problem.path, "remove allow_ragged_batch and pad requests to one length, or export the model with an input of shape [-1]")


_BAD = 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
_X, _Y = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]', 'output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]'
_MODEL = "# model: x FP32 [N, 64] -> y FP32 [N, 16]\n"
_SIGNATURE = frozenset({"config", "signature"})

RULES: tuple[Rule, ...] = (
    *onnx_files.RULES,
    Rule(
        "TG341",
        "tensors-left-out",
        Consequence.REFUSED,
        "A config that lists inputs lists all that the model requires, and without auto-complete also its outputs.",
        f"The backend compares the number of inputs and says 'configuration expects 1 inputs, model provides 2', without a name ({_SOURCE}, ValidateInputs; "
        f"{_RECORDED}). Outputs may be left out, but without any at all every request fails.",
        f"# model: x FP32 [N, 64], b FP32 [N, 64] -> y FP32 [N, 16]\n{_BAD}{_X}\n{_Y}",
        f'{_BAD}input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 64 ] }}, {{ name: "b" data_type: TYPE_FP32 dims: [ 64 ] }} ]\n{_Y}',
        _inputs,
        needs=_SIGNATURE,
    ),
    Rule(
        "TG342",
        "unknown-tensor",
        Consequence.REFUSED,
        "Every input, output and sequence control of the config is one of the model, by its exact name.",
        f"The backend looks names up in the graph and says which are allowed ({_SOURCE}, ValidateInputs and ValidateOutputs; {_RECORDED}). Case counts.",
        f'{_MODEL}{_BAD}{_X}\noutput [ {{ name: "logits" data_type: TYPE_FP32 dims: [ 16 ] }} ]',
        f"{_BAD}{_X}\n{_Y}",
        _of(_name, Kind.UNKNOWN_INPUT, Kind.UNKNOWN_OUTPUT, Kind.CONTROL_NAME, Kind.STATE_NAME),
        needs=_SIGNATURE,
    ),
    Rule(
        "TG343",
        "wrong-dtype",
        Consequence.REFUSED,
        "Every tensor of the config has the data type that the model has.",
        f"The backend converts nothing: types must be equal ({_SOURCE}; {_RECORDED}). A model in FP16 has FP16 inputs unless it casts them itself.",
        f'{_MODEL}{_BAD}input [ {{ name: "x" data_type: TYPE_INT64 dims: [ 64 ] }} ]\n{_Y}',
        f"{_BAD}{_X}\n{_Y}",
        _of(_dtype, Kind.DTYPE, Kind.CONTROL_DTYPE),
        needs=_SIGNATURE,
    ),
    Rule(
        "TG344",
        "wrong-dims",
        Consequence.REFUSED,
        "The dims of the config fit the shapes of the model: inputs may be narrower, outputs must be equal.",
        "A free dimension of an input takes any size in the config, a fixed one only itself. Outputs are compared exactly: -1 where the model is "
        "free, else the same "
        f"number (CompareDimsSupported in backend/src/backend_common.cc; {_RECORDED}). With max_batch_size above 0 dims leave out the first "
        "dimension; where there is a "
        "reshape, its shape is compared. ONNX Runtime fixes free dimensions of outputs that its shape inference can tell, whatever name the "
        "exporter gave them.",
        f'{_MODEL}{_BAD}input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 1, 64 ] }} ]\n{_Y}',
        f"{_BAD}{_X}\n{_Y}",
        _of(_dims, Kind.DIMS, Kind.CONTROL_DIMS),
        needs=_SIGNATURE,
    ),
    Rule(
        "TG345",
        "fixed-batch-dimension",
        Consequence.REFUSED,
        "With max_batch_size above 0, the first dimension of each listed input and output is free in the model.",
        f"The batch takes the first dimension, so the backend refuses a tensor where it is a constant ({_SOURCE}; {_RECORDED}), be it 1; where it "
        "fills in the tensors "
        "itself, it says 'model does not support batching'.",
        f"# model: x FP32 [1, 64] -> y FP32 [1, 16]\n{_BAD}{_X}\n{_Y}",
        'platform: "onnxruntime_onnx"\nmax_batch_size: 0\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 1, 64 ] } ]\n'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1, 16 ] } ]',
        _of(_batch_axis, Kind.NO_BATCH_AXIS),
        needs=_SIGNATURE,
    ),
    Rule(
        "TG346",
        "scalar-with-dims",
        Consequence.REFUSED,
        "A scalar of the model is served with dims [ 1 ], and without batching.",
        f"The backend takes nothing but ones for a scalar ({_SOURCE}; {_RECORDED}). With max_batch_size above 0 a scalar output loads and answers "
        "batches of 1; every "
        "larger batch fails, since one value cannot be split among its requests.",
        f'# model: x FP32 [N, 64] -> y FP32 []\n{_BAD}{_X}\noutput [ {{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }} ]',
        'platform: "onnxruntime_onnx"\nmax_batch_size: 0\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 64 ] } ]\n'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]',
        _of(_scalar, Kind.SCALAR, Kind.SCALAR_BATCH),
        needs=_SIGNATURE,
    ),
    Rule(
        "TG347",
        "optional-or-ragged-input",
        Consequence.REFUSED,
        "Optional inputs have a default in the model and no batching; ragged inputs have the shape [-1] in the model.",
        "An optional input must be an initializer that a request may override, and max_batch_size must be 0; a ragged batch reaches the model as "
        f"one flat tensor ({_SOURCE}, "
        f"ValidateInputs; {_RECORDED}).",
        f'{_MODEL}{_BAD}input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 64 ] allow_ragged_batch: true }} ]\n{_Y}',
        f"{_BAD}{_X}\n{_Y}",
        _of(_special, Kind.OPTIONAL_WITH_BATCHING, Kind.REQUIRED_IS_OPTIONAL, Kind.DEFAULT_NOT_OPTIONAL, Kind.RAGGED),
        needs=_SIGNATURE,
    ),
)
