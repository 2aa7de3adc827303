"""The scalar types of the spec: names, paths, counts, sizes, sample values.

Each is an annotated type whose check says what is wrong in one sentence, and whose JSON Schema accepts what the check accepts. `problem` is how a check of the
spec refuses a value: the loader turns it into a finding, plain pydantic users see the same sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1
INT64_MAX = 2**63 - 1
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


def problem(message: str, *, code: str = "TG011", hint: str = "", consequence: str = "", beside: tuple[str, ...] = ()) -> PydanticCustomError:
    """An error for pydantic that carries a whole finding: `code` and the sentences of `tritongen.diagnostics.Diagnostic`.

    `beside`: the path of the other key where two disagree, from the mapping on that holds the one at fault.
    """
    return PydanticCustomError("tritongen", "{message}", {"message": message, "code": code, "hint": hint, "consequence": consequence, "beside": beside})


def raise_all(problems: Sequence[PydanticCustomError], value: object) -> None:
    """Raises everything that is wrong with a value at once; nothing where nothing is."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ValidationError.from_exception_data("value", [InitErrorDetails(type=found, input=value) for found in problems])


def twice(shown: Sequence[str], *, consequence: str) -> list[PydanticCustomError]:
    """A problem for each text that stands more than once in a list of what may stand once; `consequence` is what the server does."""
    doubles = dict.fromkeys(text for index, text in enumerate(shown) if text in shown[:index])
    return [problem(f"{text} is listed twice", consequence=consequence, hint="keep one") for text in doubles]


def together(value: object, handler: Callable[[object], Any], judge: Callable[[list[Any], bool], Iterable[PydanticCustomError]]) -> Any:
    """A list as its type and a rule judge it, with the findings of both: an item that is wrong does not hide what is wrong with the others.

    `judge` gets the items that are fine, and whether these are all.
    """
    try:
        checked = handler(value)
    except ValidationError as error:
        if not isinstance(value, list | tuple):
            raise
        found = [_again(detail) for detail in error.errors(include_url=False)]
        wrong = {detail["loc"][0] for detail in found if detail["loc"]}
        items, is_whole = [item for index, item in enumerate(value) if index not in wrong], False
    else:
        found, items, is_whole = [], list(checked), True
    found += [InitErrorDetails(type=fault, input=value) for fault in judge(items, is_whole)]
    if found:
        raise ValidationError.from_exception_data("value", found)
    return checked


def _again(detail: ErrorDetails) -> InitErrorDetails:
    """An error that was raised, to be raised with others."""
    kind: str | PydanticCustomError = detail["type"]
    context = detail.get("ctx", {})
    if kind == "tritongen":
        kind = PydanticCustomError("tritongen", "{message}", context)
    return InitErrorDetails(type=kind, loc=detail["loc"], input=detail["input"], ctx=context)


def describe(value: object) -> str:
    """What was found, for messages: `the text '4'`, `the number 1.5`, `true`, `nothing`, `a list`, `a mapping`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = repr(value[:60]) + ("…" if len(value) > 60 else "")
        return f"the text {shown}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


PositiveInt = Annotated[int, Field(strict=True, ge=1, le=INT32_MAX)]
"""1 to 2**31-1: most counts and sizes are int32 in model_config.proto."""

Size32 = Annotated[int, Field(strict=True, ge=0, le=INT32_MAX)]
"""0 to 2**31-1."""

Flag = Annotated[bool, Field(strict=True)]
"""true or false, and no word or number that could be taken for one."""

Count32 = Annotated[int, Field(strict=True, ge=1, le=UINT32_MAX)]
"""1 to 2**32-1, for the uint32 fields of model_config.proto in which 0 would mean something else."""

VersionNumber = Annotated[int, Field(strict=True, ge=1, le=INT64_MAX)]
"""A version folder's name: Triton ignores folders that start with 0 and parses the others as int64."""

Dims = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
"""Dimensions without the batch dimension, each at least 1, as Triton refuses 0 in `dims`, and at most 2**31-1, as TensorRT takes none above."""


def _check_name(value: str) -> str:
    """A model name that Triton, file systems, URLs and shells all keep as it is."""
    hint = "start with a letter, a digit or _, then use letters, digits and _ . + -"
    if not value:
        raise problem("a model's name cannot be empty", code="TG013", hint=hint, consequence="Triton refuses a model without a name")
    problems = []
    if value.startswith("."):
        consequence = "hidden folders are skipped by copy tools, and . and .. are not folders of their own"
        problems.append(problem(f"{value[:60]!r} starts with a dot", code="TG013", hint=hint, consequence=consequence))
    if len(value.encode("utf-8", "replace")) > 255:
        message = f"the name {value[:20]!r}… is longer than 255 bytes"
        problems.append(problem(message, code="TG013", hint="shorten it", consequence="file systems refuse such a folder name"))
    rest = value.lstrip(".")
    if rest and not re.fullmatch(NAME_PATTERN, rest):
        wrong = sorted({character for character in rest if not re.fullmatch(r"[A-Za-z0-9_.+-]", character)}) or [rest[0]]
        message = f"the name {value[:60]!r} has characters that do not survive in a URL or a shell: {', '.join(repr(character) for character in wrong[:5])}"
        consequence = "the name is a folder of the repository and a segment of every request's URL"
        problems.append(problem(message, code="TG013", hint=hint, consequence=consequence))
    raise_all(problems, value)
    return value


NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
ModelName = Annotated[str, AfterValidator(_check_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN}$", "maxLength": 255})]


def check_path(value: str) -> str:
    """Text that can be a path on this machine."""
    if not value.strip():
        raise problem("the path is empty", hint="write a path relative to the spec's folder")
    if CONTROL_CHARACTERS.search(value):
        raise problem(
            f"the path {value[:60]!r} holds a control character",
            hint="write the path without it; in double quotes YAML reads \\t, \\n and \\0 as such characters",
        )
    return value


PATH_SCHEMA: dict[str, Any] = {"type": "string", "pattern": r"^(?=.*\S)[^\x00-\x1f\x7f]+$"}
PathText = Annotated[str, AfterValidator(check_path), WithJsonSchema(PATH_SCHEMA)]


def _check_server_path(value: str) -> str:
    """An absolute path inside the container, which is always Linux."""
    path = PurePosixPath(check_path(value))
    if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
        raise problem(
            f"{value!r} is not an absolute path of a folder inside the container", hint='write it from the root and without "..", such as /engine-cache'
        )
    return str(path)


ServerPath = Annotated[
    str, AfterValidator(_check_server_path), WithJsonSchema({"type": "string", "pattern": r"^/(?!/*$)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f]+$"})
]

RELEASE_PATTERN = r"[0-9]{2}\.(?:0[1-9]|1[0-2])"


def _check_release(value: object) -> str:
    """The YY.MM of NVIDIA's container tags."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise problem(
            f"a release is a text, and {value} is a number, in which 25.10 and 25.1 are the same",
            code="TG010",
            hint='put it in quotes, as in release: "25.08"',
        )
    if not isinstance(value, str):
        raise problem(f'expected a release such as "25.08", got {describe(value)}', code="TG010", hint="releases are named by year and month, YY.MM")
    if not re.fullmatch(RELEASE_PATTERN, value):
        raise problem(
            f"{value[:60]!r} is not a release of NVIDIA's Triton container", hint='releases are named by year and month with two digits each, as in "25.08"'
        )
    return value


Release = Annotated[str, BeforeValidator(_check_release), WithJsonSchema({"type": "string", "pattern": f"^{RELEASE_PATTERN}$", "examples": ["25.08"]})]


def _check_package(value: str) -> str:
    """The import name of a top-level package: a dotted one could be found only by importing its parent."""
    if not value.isascii() or not value.isidentifier():
        raise problem(
            f"{value[:60]!r} is not the name of a Python package",
            hint="write the name that Python imports, such as rapidocr_onnxruntime, and put sub-folders into path",
        )
    return value


PackageName = Annotated[str, AfterValidator(_check_package), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})]


def order_problems(values: Sequence[int], what: str, *, most: int | None = None) -> list[PydanticCustomError]:
    """The problem of values that do not ascend without repetition: names the first one out of place, and gives the right list, without those above `most`."""
    for before, value in pairwise(values):
        if value <= before:
            fault = f"{value} is there twice" if value == before else f"{value} stands after {before}"
            right = sorted({size for size in values if most is None or size <= most})
            return [problem(f"{what} must ascend, each once: {fault}", hint=f"write {right}" if right else "remove the key")]
    return []


def number_problems(value: Sequence[object], *, least: int = 1, most: int = INT32_MAX) -> tuple[list[int], list[PydanticCustomError]]:
    """The whole numbers between `least` and `most` in a list, and a problem for each item that is none."""
    numbers: list[int] = []
    problems: list[PydanticCustomError] = []
    for index, item in enumerate(value):
        if not isinstance(item, int) or isinstance(item, bool):
            message = f"expected a list of whole numbers, item {index + 1} is {describe(item)}"
            problems.append(problem(message, code="TG010", hint="write numbers without quotes or decimals"))
        elif not least <= item <= most:
            limit = f"at least {least}" if item < least else f"at most {most}"
            problems.append(problem(f"item {index + 1} is {item}, and it must be {limit}", hint=f"write whole numbers of {limit}"))
        else:
            numbers.append(item)
    return numbers, problems


def whole_numbers(value: Sequence[object], *, least: int = 1, most: int = INT32_MAX) -> tuple[int, ...]:
    """A list of whole numbers between `least` and `most`. Raises a problem for every item that is none."""
    numbers, problems = number_problems(value, least=least, most=most)
    raise_all(problems, value)
    return tuple(numbers)


def _check_warmup(value: object) -> object:
    """`auto`, or the sizes; `none` is no size at all."""
    if value in ("auto", "none"):
        return "auto" if value == "auto" else ()
    if not isinstance(value, list | tuple):
        raise problem(
            f"expected auto, none or a list of batch sizes, got {describe(value)}", code="TG010", hint="write warmup: auto, warmup: none or warmup: [1, 8]"
        )
    sizes, problems = number_problems(value)
    raise_all([*problems, *order_problems(sizes, "batch sizes")], value)
    return tuple(sizes)


Warmup = Annotated[
    Literal["auto"] | tuple[int, ...],
    BeforeValidator(_check_warmup),
    WithJsonSchema({"anyOf": [{"enum": ["auto", "none"]}, {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": INT32_MAX}}]}),
]


def _check_version(value: object) -> object:
    """A version folder's number, or `auto`."""
    if value == "auto":
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise problem(
            f"expected a whole number or auto, got {describe(value)}", code="TG010", hint="write version: 1, or version: auto to number changed weights"
        )
    if not 1 <= value <= INT64_MAX:
        raise problem(
            f"a version is at least 1 and at most {INT64_MAX}, got {value}",
            consequence="Triton ignores version folders that start with 0",
            hint="write version: 1",
        )
    return value


ModelVersion = Annotated[
    Literal["auto"] | int,
    BeforeValidator(_check_version),
    WithJsonSchema({"anyOf": [{"enum": ["auto"]}, {"type": "integer", "minimum": 1, "maximum": INT64_MAX}]}),
]


def _shape_of(value: object) -> tuple[tuple[int, ...], str]:
    """Shape and kind (`number`, `true/false`, `text`) of a sample value. Raises a problem for what numpy could not make an array of."""
    if not isinstance(value, list | tuple):
        kind = {bool: "true/false", int: "number", float: "number", str: "text"}.get(type(value))
        if kind is None:
            raise problem(
                f"a sample holds numbers, true/false or texts, not {describe(value)}", code="TG010", hint="write it as a nested list, or in a .npy file"
            )
        return (), kind
    parts = {_shape_of(item) for item in value}
    if not parts:
        raise problem("a list in a sample is empty", hint="give at least one value")
    if len(parts) > 1:
        kinds = sorted({kind for _, kind in parts})
        raise problem(
            f"a list in a sample mixes {' and '.join(kinds)}" if len(kinds) > 1 else "the lists of a sample have different lengths",
            hint="a sample is a box of one kind of value: make all rows equally long and of one kind",
        )
    ((shape, kind),) = parts
    return (len(value), *shape), kind


def _freeze(value: object) -> object:
    """Lists as tuples, all the way down."""
    return tuple(_freeze(item) for item in value) if isinstance(value, list | tuple) else value


def check_sample(value: object) -> object:
    """A value, a nested list of values, or the path of a .npy file. Raises a problem for anything else."""
    _shape_of(value)
    return check_path(value) if isinstance(value, str) and value.endswith(".npy") else _freeze(value)


SAMPLE_SCHEMA: dict[str, Any] = {
    "description": "a number, true or false, a text, or nested lists of one of these",
    "anyOf": [{"type": ["number", "boolean", "string"]}, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/SampleValue"}}],
}
SampleValue: TypeAlias = bool | int | float | str | tuple[Any, ...]
