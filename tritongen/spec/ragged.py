"""What requests may look like beyond plain rows: inputs of a length of their own, and inputs that may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import INT32_MAX, describe, problem, raise_all

BatchInputKind = Literal[
    "batch_element_count",
    "batch_accumulated_element_count",
    "batch_accumulated_element_count_with_zero",
    "batch_max_element_count_as_shape",
    "batch_item_shape",
    "batch_item_shape_flatten",
]

_REQUEST_DIMS = "-1 for a size that varies"


def _check_dim(value: int) -> int:
    if value == 0 or value < -1:
        raise problem(
            f"a dimension is a size of at least 1, or {_REQUEST_DIMS}; got {value}", consequence="Triton refuses other dims", hint="write -1, or the size"
        )
    return value


RequestDims = Annotated[tuple[Annotated[int, Field(strict=True, ge=-1, le=INT32_MAX), AfterValidator(_check_dim)], ...], Field(min_length=1)]
"""Dims of one request, without the batch dimension: sizes, or -1."""


def _input_forms(value: object) -> object:
    """A list of names as the mapping to one dimension of any size that it stands for."""
    if isinstance(value, str):
        raise problem(f"expected a list of inputs, got {describe(value)}", code="TG010", hint=f"write inputs: [{value}]")
    if isinstance(value, list | tuple):
        raise_all(
            [
                problem(f"expected the name of an input, got {describe(item)}", code="TG010", hint="put it in quotes")
                for item in value
                if not isinstance(item, str)
            ],
            value,
        )
        raise_all([problem(f"'{name}' is listed twice", hint="name it once") for name in dict.fromkeys(value) if list(value).count(name) > 1], value)
        value = {name: [-1] for name in value}
    if isinstance(value, Mapping) and not value:
        raise problem("no input is named", hint="name the inputs whose requests differ in length, or remove ragged")
    return value


_NAMES_SCHEMA = {"type": "array", "minItems": 1, "items": {"type": "string"}}

RaggedInputs = Annotated[Mapping[str, RequestDims], BeforeValidator(_input_forms), Forms(lambda full: [_NAMES_SCHEMA, full])]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class BatchInput(
    Strict, json_schema_extra={"examples": [{"names": ["offsets"], "kind": "batch_accumulated_element_count_with_zero", "source": "x", "dtype": "int32"}]}
):
    """An input of the graph that no request sends: Triton's backend makes it for each batch, from the shapes of the requests."""

    names: Names = setting(
        "The inputs of the graph that get it.",
        default=...,
        sets="batch_input.target_name, an entry for each name; the name leaves input",
        why="the graph must be told where each request's part ends",
    )
    kind: BatchInputKind = setting(
        "What it holds: batch_element_count, the elements of each request; batch_accumulated_element_count, where each request ends;"
        " batch_accumulated_element_count_with_zero, the same after a leading 0; batch_max_element_count_as_shape, nothing, in the size of the longest request;"
        " batch_item_shape, a row with the shape of each item; batch_item_shape_flatten, these rows one after another.",
        default=...,
        sets="batch_input.kind",
        why="take the one that the graph was written for",
    )
    source: str = setting(
        "The input whose shapes it is made from.", default=..., sets="batch_input.source_input", why="where several inputs are ragged, they may differ"
    )
    dtype: Literal["int32", "fp32"] | None = setting(
        "Its type: int32 or fp32, the only ones that Triton makes. Default: that of the graph's input.",
        sets="batch_input.data_type",
        why="to have it checked against the graph",
    )


class BatchOutput(Strict, json_schema_extra={"examples": [{"names": ["y"], "source": "x"}]}):
    """Outputs that are cut up by the lengths of an input, in place of one row for each row of the request."""

    names: Names = setting(
        "The outputs to cut: each has a first axis as long as all requests' elements together.",
        default=...,
        sets="batch_output.target_name, an entry for each name",
        why="for outputs with a value for each element of the input",
    )
    source: str = setting("The input whose lengths they are cut by.", default=..., sets="batch_output.source_input", why="it says which elements are whose")


class Ragged(
    Strict,
    json_schema_extra={
        "examples": [
            {
                "inputs": ["x"],
                "batch_inputs": [{"names": ["offsets"], "kind": "batch_accumulated_element_count_with_zero", "source": "x"}],
                "batch_outputs": [{"names": ["y"], "source": "x"}],
            }
        ],
        "anyOf": [{"required": ["inputs"]}, {"required": ["batch_inputs"]}, {"required": ["batch_outputs"]}],
    },
):
    """Requests of different lengths in one batch: their elements are strung together, and the model is told where each ends."""

    inputs: RaggedInputs = setting(
        "The inputs whose requests differ in length: a list of names, or the dims of one request by name, such as {x: [-1, 4]} (-1 for a size that varies)."
        " The graph must have each as a single variable dimension. Default: the sources of batch_inputs and batch_outputs, each with the dims [-1].",
        default_factory=dict,
        sets="input.allow_ragged_batch and input.dims",
        why="without it, only requests of the same length share a batch",
    )
    batch_inputs: tuple[BatchInput, ...] = setting(
        "Inputs of the graph that the backend makes from the shapes of the requests.",
        default=(),
        sets="batch_input",
        why="nearly always: nothing else tells the graph where one request ends and the next begins",
    )
    batch_outputs: tuple[BatchOutput, ...] = setting(
        "Outputs that are cut up by the lengths of an input.", default=(), sets="batch_output", why="for outputs with a value for each element"
    )

    @model_validator(mode="before")
    @classmethod
    def _inputs_from_sources(cls, data: object) -> object:
        if not isinstance(data, Mapping) or "inputs" in data:
            return data
        entries = [entry for key in ("batch_inputs", "batch_outputs") if isinstance(data.get(key), list | tuple) for entry in data[key]]
        sources = [entry["source"] for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("source"), str)]
        if not entries:
            raise problem("no input is named", code="TG009", hint="name the inputs whose requests differ in length: inputs: [x]")
        return {**data, "inputs": {name: [-1] for name in sources}} if sources else data

    @field_validator("batch_inputs")
    @classmethod
    def _made_once(cls, entries: tuple[BatchInput, ...], info: ValidationInfo) -> tuple[BatchInput, ...]:
        problems = list(_twice([entry.names for entry in entries], "batch_inputs"))
        for name in dict.fromkeys(name for entry in entries for name in entry.names):
            if name in info.data.get("inputs", {}):
                message = f"'{name}' is among batch_inputs, which no request sends, and among ragged.inputs, which every request sends"
                problems.append(problem(message, code="TG015", hint="remove it from one of the two", beside=("inputs", name)))
        raise_all(problems, entries)
        return entries

    @field_validator("batch_outputs")
    @classmethod
    def _cut_once(cls, entries: tuple[BatchOutput, ...]) -> tuple[BatchOutput, ...]:
        raise_all(list(_twice([entry.names for entry in entries], "batch_outputs")), entries)
        return entries


def _twice(lists: Sequence[Sequence[str]], key: str) -> Iterator[PydanticCustomError]:
    names = [name for names in lists for name in names]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield problem(f"'{name}' is named {names.count(name)} times in {key}", code="TG015", hint="name it once")


class Requests(Strict):
    """The keys of a model about what requests may look like."""

    ragged: Ragged | None = setting(
        "Requests of different lengths in one batch. Default: requests are put together row by row, and only where their shapes are equal.",
        sets="input.allow_ragged_batch, batch_input and batch_output",
        why="for a graph that takes its items strung together; it is no padding, and no graph is made so by it",
    )
    optional_inputs: tuple[str, ...] = setting(
        "Inputs that a request may leave out: graph inputs with a default value in the file. The model is then served without batching,"
        " as ONNX Runtime's backend has no optional inputs in a batch. Default: such inputs are not served, and keep their default.",
        default=(),
        sets="input.optional",
        why="to let clients change what the file sets, such as a threshold",
    )

    @field_validator("ragged")
    @classmethod
    def _has_batches(cls, ragged: Ragged | None, info: ValidationInfo) -> Ragged | None:
        batching = info.data.get("batching")
        if ragged is not None and batching is not None and batching.max == 0:
            raise problem(
                "ragged puts requests of different lengths into one batch, and batching is off (batching.max: 0)",
                code="TG015",
                consequence="no two requests would ever share a batch",
                hint="remove ragged, or write batching: {max: 8} for this model",
                beside=("batching", "max"),
            )
        return ragged

    @field_validator("optional_inputs")
    @classmethod
    def _optional_and_whole(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        problems = [problem(f"'{name}' is listed twice", hint="name it once") for name in dict.fromkeys(names) if names.count(name) > 1]
        if names and info.data.get("ragged") is not None:
            problems.append(
                problem(
                    "optional_inputs needs a model without batching, and ragged one with batches",
                    code="TG015",
                    consequence="ONNX Runtime's backend refuses an optional input of a model that batches",
                    hint="remove one of the two",
                    beside=("ragged",),
                )
            )
        raise_all(problems, names)
        return names
