"""A problem as a value: what kind it is, where in the config, and what NVIDIA's backend says of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""A field path in a config, such as `("input", 0, "dims")`; entries of a map by their key."""


class Kind(enum.Enum):
    """What is wrong. Rules map kinds to codes."""

    MISSING_INPUT = "missing input"
    UNKNOWN_INPUT = "unknown input"
    UNKNOWN_OUTPUT = "unknown output"
    DUPLICATE_INPUT = "duplicate input"
    DEFAULT_NOT_OPTIONAL = "an input with a default that is not optional"
    REQUIRED_IS_OPTIONAL = "a required input that is optional"
    OPTIONAL_WITH_BATCHING = "optional input of a batching model"
    INPUT_COUNT = "number of inputs"
    DTYPE = "dtype"
    UNSUPPORTED_DTYPE = "dtype that this release lacks"
    DIMS = "dims"
    NO_BATCH_AXIS = "no batch axis"
    SCALAR = "scalar"
    SCALAR_BATCH = "scalar output of a batching model"
    RAGGED = "ragged"
    NO_OUTPUT = "no output"
    CONTROL_NAME = "name of a sequence control"
    CONTROL_DIMS = "dims of a sequence control"
    CONTROL_DTYPE = "dtype of a sequence control"
    STATE_NAME = "name of a sequence state"
    PARAMETER = "value of a parameter"
    ACCELERATOR = "accelerator"
    ACCELERATOR_KEY = "key of an accelerator's parameters"
    ACCELERATOR_VALUE = "value of an accelerator's parameter"
    TOO_NEW = "newer than the runtime"


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        kind: what is wrong.
        message: what NVIDIA's backend says; where it loads the model all the same, what it says to a request.
        path: the field of the config.
        name: the tensor, parameter or accelerator.
        found: what the config says.
        expected: what the model or the backend has.
        choices: names or values that would do.
        refused: whether the model does not load; else it loads, and requests fail.
    """

    kind: Kind
    message: str
    path: Path = ()
    name: str = ""
    found: str = ""
    expected: str = ""
    choices: tuple[str, ...] = field(default=())
    refused: bool = True
