"""Load tests that belong to a spec: what `tritongen load spec.yaml --scenario NAME` sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic.json_schema import JsonSchemaValue

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.traffic import too_long
from tritongen.spec.traffic_keys import NUMBER_SCHEMA, Arrivals, BatchMix, Rate, SizeMix, SloMapping, Steps
from tritongen.spec.units import Duration
from tritongen.spec.values import PathText, PositiveInt, Size32, problem

DEFAULT_RATE = 50.0
"""Requests a second where nothing is said."""

RANDOM = "random"
"""`data` that lies in no file."""

MOST_DIFFERENT = 100_000
"""Different requests to a model: each takes some time and memory before the first one is sent, however small it is."""


_SENT = "no field; `tritongen load` sends by it"


class Traffic(Strict):
    """What is sent to a model, and what it must keep."""

    batch_mix: BatchMix | None = setting(
        "Rows of a request: a number, or rows with their parts, such as [1:70%, 8:30%]. Default: 1.",
        sets=_SENT,
        why="a batcher is worth what it makes of the sizes that really come",
    )
    shape_mix: Mapping[str, SizeMix] | None = setting(
        "Sizes of inputs by name, without the batch dimension, with their parts: {x: [3x48x320:70%, 3x48x640:30%]}. Default: the `opt` of `shapes`.",
        sets=_SENT,
        why="long requests hold short ones up",
    )
    data: PathText | None = setting(
        "Where inputs come from: random; an .npz file with an array for each input; or a folder with NAME.npy or a folder NAME of files for each input, read"
        " as in `samples`. Relative to the spec's folder. Default: the model's `samples`, and seeded random values for other inputs.",
        sets=_SENT,
        why="random values are answered faster, or slower, than real ones by models that look at them",
    )
    slo: SloMapping | None = setting(
        "What must be kept: p50 to p99.999, mean, max, error_rate, such as {p99: 20ms, error_rate: 0.1%}. Default: the `slo` of the model.",
        sets="no field; the verdict of the load test, and its exit code",
        why="to promise more, or other, than the model's own `slo` does",
    )


class ModelTraffic(Traffic, json_schema_extra={"examples": [{"weight": 3, "batch_mix": ["1:70%", "8:30%"]}]}):
    """One model's part in a scenario; what is left out is as the scenario has it."""

    weight: Rate = setting(
        "How many of the scenario's requests are for this model, in proportion to the others'.", default=1.0, sets=_SENT, why="to mix models as they are asked"
    )


def _share_forms(value: object) -> object:
    """A plain weight as the mapping that it stands for."""
    return {"weight": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _model_forms(value: object) -> object:
    """A list of names as the mapping of equal parts that it stands for."""
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        if twice := [name for index, name in enumerate(value) if name in value[:index]]:
            raise problem(f"{twice[0]!r} is there twice", hint=f"give it a weight instead: {{{twice[0]}: 2}}")
        value = {name: {} for name in value}
    if isinstance(value, Mapping) and not value:
        raise problem("no model is named", hint="name one, or leave the key out for all models")
    return value


_NAMES_SCHEMA: JsonSchemaValue = {"type": "array", "minItems": 1, "items": {"type": "string"}}
ShareField = Annotated[ModelTraffic, BeforeValidator(_share_forms), Forms(lambda full: [NUMBER_SCHEMA, full])]
SharesField = Annotated[Mapping[str, ShareField], BeforeValidator(_model_forms), Forms(lambda full: [{**full, "minProperties": 1}, _NAMES_SCHEMA])]


DurationOrZero = Annotated[
    Duration, BeforeValidator(lambda value: "0s" if value == 0 and not isinstance(value, bool) else value), Forms(lambda full: [full, {"const": 0}])
]
"""A time, or 0, which needs no unit."""


def beside_arrivals(loop: str, arrivals: str) -> str:
    """Why arrivals cannot be of a loop (`rate`, `users` or `stages`), in a sentence; empty where they can."""
    if loop == "users":
        return "arrivals are given, and so is users: in a closed loop a request is sent when the one before was answered"
    return f"arrivals are those of a trace, and {loop} is given: a trace says itself when each request is due" if arrivals == "trace" else ""


class Scenario(Traffic, json_schema_extra={"examples": [{"rate": 200, "duration": "60s", "batch_mix": ["1:70%", "8:30%"], "slo": {"p99": "20ms"}}]}):
    """One load test: how requests come, and to which models. Options of the command line override its values."""

    models: SharesField | None = setting(
        "Models and their weights: {recognizer: 3, detector: 1}, a list of names, or a mapping for each. Default: all models of the spec, in equal parts.",
        sets=_SENT,
        why="models on one server share its cores and GPUs: alone, each looks faster than it will be",
    )
    rate: Rate | None = setting(
        "Requests a second, of all models together, whether or not earlier ones were answered. Default: 50.",
        sets=_SENT,
        why="it is the load that the service will get",
    )
    users: PositiveInt | None = setting(
        "A closed loop in place of a rate: so many requests under way, each sent when the one before was answered.",
        sets=_SENT,
        why="for batch jobs; a server that stands still hardly shows",
    )
    stages: Steps | None = setting(
        "Rates after one another in place of one rate, such as [100:30s, 100-400:1m]: a rate, or a ramp, and for how long.",
        sets=_SENT,
        why="to see where latency begins to rise",
    )
    duration_us: Duration = setting(
        "Length of the measured time; stages have their own. Default: 30s.",
        default_factory=lambda: 30_000_000,
        alias="duration",
        sets=_SENT,
        why="p99.9 stands on one request in a thousand: send at least 10,000",
    )
    warmup_us: DurationOrZero = setting(
        "Time before it, whose requests are in no result. Default: 5s; none for a trace, which is sent from its first line on.",
        default_factory=lambda: 5_000_000,
        alias="warmup",
        sets=_SENT,
        why="caches, clocks and connections take a while to be what they will be",
    )
    arrivals: Arrivals = setting(
        "poisson (independent users), constant, or trace:FILE with instants in seconds, one a line; relative to the spec's folder. Default: poisson.",
        default=("poisson", ""),
        sets=_SENT,
        why="trace to send what a real service got",
    )
    deadline_us: Duration = setting(
        "When a request is given up, from its scheduled instant. Default: 10s.",
        default_factory=lambda: 10_000_000,
        alias="deadline",
        sets=_SENT,
        why="as clients do",
    )
    protocol: Literal["grpc", "http"] = setting(
        "Over what requests are sent where the command line gives no address: to port 8001 or 8000 of this machine.",
        default="grpc",
        sets=_SENT,
        why="to measure what clients will use",
    )
    pool: Annotated[int, Field(strict=True, ge=1, le=MOST_DIFFERENT)] = setting(
        "How many different requests to each model are prepared before the first one is sent.",
        default=64,
        sets=_SENT,
        why="more for models with a response cache, or to send all files of a folder",
    )
    seed: Size32 = setting("Of arrivals, of random values and of the order of files.", default=0, sets=_SENT, why="to send something else")

    @field_validator("users", "stages")
    @classmethod
    def _one_loop(cls, value: Any, info: ValidationInfo) -> Any:
        other = next((name for name in ("rate", "users") if name != info.field_name and info.data.get(name) is not None), None)
        if value is not None and other:
            message = f"{info.field_name} is given, and so is {other}: a run is an open loop of one rate, a closed loop, or stages"
            raise problem(message, code="TG015", hint="keep one of them", beside=(other,))
        return value

    @field_validator("duration_us", "deadline_us", "warmup_us")
    @classmethod
    def _some_time(cls, value: int, info: ValidationInfo) -> int:
        key = str(info.field_name).removesuffix("_us")
        if value == 0 and key != "warmup":
            raise problem(f"{key} is 0", hint=f"write the time with its unit, such as {key}: 10s")
        if value and (wrong := too_long(value / 1e6, key)):
            raise problem(wrong, hint=f"write a shorter one, such as {key}: 10s")
        if key == "duration" and info.data.get("stages") is not None:
            message = "duration is given, and so is stages, which have their own durations"
            raise problem(message, code="TG015", hint="keep one of them", beside=("stages",))
        return value

    @field_validator("arrivals")
    @classmethod
    def _arrivals_of_an_open_loop(cls, value: tuple[str, str], info: ValidationInfo) -> tuple[str, str]:
        given = next((name for name in ("users", "rate", "stages") if info.data.get(name) is not None), "")
        if given and (wrong := beside_arrivals(given, value[0])):
            raise problem(wrong, code="TG015", hint="keep one of them", beside=(given,))
        return value


class LoadTests(Strict, json_schema_extra={"examples": [{"scenarios": {"steady": {"rate": 200, "duration": "60s"}}}]}):
    """Load tests of the models. What is rendered does not depend on them."""

    scenarios: Annotated[Mapping[str, Scenario], Field(min_length=1)] = setting(
        "Load tests by name; `tritongen load spec.yaml --scenario NAME` runs one, and the only one without a name.",
        default=...,
        sets=_SENT,
        why="to run the same load test today, in CI and after the next change",
    )
