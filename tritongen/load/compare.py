"""An earlier result beside a new one: what changed, and how far the difference can be trusted. Judges nothing: the verdict of a run is its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError
from tritongen.load.histogram import Histogram
from tritongen.load.model_result import ModelResult
from tritongen.load.recorder import summary
from tritongen.load.result import SCHEMA_VERSION, LoadResult
from tritongen.load.verdict import FEWEST_BEYOND, is_thin, samples_beyond
from tritongen.sources import read_text

_LONGEST_VALUE = 80
_MOST_PROBLEMS = 10
_ABSENT = object()
_MEASURES = ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
_OF_A_MODEL = ("p50", "p99", "p99.9", "max")
_LOOPS = {"open": "an open loop", "closed": "a closed loop"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)


class EarlierLatency(_Part):
    """Measures in milliseconds; None where nothing was answered."""

    count: int = Field(ge=0)
    mean: float | None = Field(default=None, ge=0)
    p50: float | None = Field(default=None, ge=0)
    p90: float | None = Field(default=None, ge=0)
    p95: float | None = Field(default=None, ge=0)
    p99: float | None = Field(default=None, ge=0)
    p99_9: float | None = Field(default=None, ge=0, alias="p99.9")
    p99_99: float | None = Field(default=None, ge=0, alias="p99.99")
    max: float | None = Field(default=None, ge=0)


class EarlierServer(_Part):
    """What the server counted."""

    average_batch: float = Field(ge=0)


class EarlierModel(_Part):
    """One model's part of the run."""

    model: str
    error_rate: float = Field(ge=0, le=1)
    latency_ms: EarlierLatency
    server: EarlierServer | None


class Earlier(_Part):
    """What a comparison needs of a result that `LoadResult.to_json` wrote."""

    schema_version: Literal[1] = Field(alias="schema")
    started: str
    versions: dict[str, str]
    settings: dict[str, JsonValue]
    loop: Literal["open", "closed"]
    valid: bool
    invalid: list[str]
    complete: bool
    rate: float = Field(ge=0)
    error_rate: float = Field(ge=0, le=1)
    latency_ms: EarlierLatency
    models: list[EarlierModel]


@dataclass(frozen=True)
class Figure:
    """One measure of both runs.

    Attributes:
        name: `rate`, `p99` and so on.
        unit: of both values: `/s`, `ms`, `%`, `rows`.
        earlier, now: the values; None where a run has none.
        note: why the difference says little; empty where it can be taken as it is.
        model: whose it is, where there are several; empty for all together.
    """

    name: str
    unit: str
    earlier: float | None
    now: float | None
    note: str = ""
    model: str = ""

    @property
    def title(self) -> str:
        """Its name, with the model's."""
        return f"{self.name} of {self.model}" if self.model else self.name

    @property
    def change(self) -> float | None:
        """The difference as a part of the earlier value; None where there is none to divide by."""
        return (self.now - self.earlier) / self.earlier if self.earlier and self.now is not None else None


@dataclass(frozen=True)
class Difference:
    """A setting or a version that is not the same in both runs, as text."""

    name: str
    earlier: str
    now: str


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other.

    Attributes:
        path: the file of the earlier one.
        started: when it began.
        figures: the measures.
        differences: settings and versions that differ.
        notes: what else stands against the comparison, in sentences.
    """

    path: str
    started: str
    figures: tuple[Figure, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def read_earlier(path: Path) -> Earlier:
    """An earlier result from its JSON file; of a search with `--find-max`, the result of its best run.

    Raises InputError: TG001 to TG003 where it is no readable text; TG422 where it is no result of a load test, or with everything that is wrong with one.
    """
    text = read_text(path).text
    try:
        document = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _refused(path, [f"this is no whole JSON document: {error}"]) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA_VERSION:
        raise _refused(path, [f"this is no result of a load test in version {SCHEMA_VERSION} of its schema"])
    if "probes" in document:
        document = document.get("result")
        if document is None:
            raise _refused(path, ["this search kept no rate, so that it has no result to compare with"])
    try:
        return Earlier.model_validate(document)
    except ValidationError as error:
        raise _refused(path, list(_wrong(error))) from error


def _refused(path: Path, messages: Sequence[str]) -> InputError:
    hint = "give a file that `tritongen load -o FILE.json` wrote"
    return InputError([Diagnostic("TG422", message, Location(str(path)), hint=hint) for message in messages[:_MOST_PROBLEMS]])


def _wrong(error: ValidationError) -> Iterator[str]:
    """What is wrong, in sentences: all keys that are missing in one, since a file that lacks many is another thing."""
    missing = []
    for found in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, found["loc"])) or "the document"
        if found["type"] == "missing":
            missing.append(f"'{place}'")
        else:
            yield f"this is no whole result of a load test: '{place}': {found['msg'][:1].lower()}{found['msg'][1:]}"
    if missing:
        yield f"this is no whole result of a load test: it lacks {', '.join(missing[:_MOST_PROBLEMS])}"


def compare(earlier: Earlier, path: Path, now: LoadResult) -> Comparison:
    """An earlier result beside this one: all requests together, and each model where there are several in either."""
    figures = [
        Figure("rate", "/s", earlier.rate, now.rate),
        *_latencies(earlier.latency_ms, now.latencies(), _MEASURES),
        Figure("errors", "%", earlier.error_rate * 100, now.error_rate * 100),
    ]
    before, after = {part.model: part for part in earlier.models}, {part.load.model: part for part in now.models}
    names = [*after, *(name for name in before if name not in after)]
    for name in names:
        figures += _of_model(before.get(name), after.get(name), name if len(names) > 1 else "")
    differences = (*_differences(earlier.settings, now.settings, ""), *_differences(earlier.versions, dict(now.versions), "versions"))
    return Comparison(str(path), earlier.started, tuple(figures), differences, tuple(_notes(earlier, now)))


def _latencies(before: EarlierLatency | None, now: Histogram | None, names: Sequence[str], model: str = "") -> Iterator[Figure]:
    """Measures of latencies; of a side that is None there is nothing, and nothing to be said of its samples."""
    earlier = before.model_dump(by_alias=True) if before is not None else {}
    later = summary(now) if now is not None else {}
    for name in names:
        note = _thin(name, earlier["count"], later["count"]) if name.startswith("p") and earlier and later else ""
        yield Figure(name, "ms", earlier.get(name), later.get(name), note, model)


def _of_model(before: EarlierModel | None, after: ModelResult | None, model: str) -> Iterator[Figure]:
    """One model's figures; those of all requests are its own where it is the only one, for which `model` is empty."""
    if model:
        yield from _latencies(before.latency_ms if before else None, after.latencies() if after else None, _OF_A_MODEL, model)
        yield Figure("errors", "%", before.error_rate * 100 if before else None, after.error_rate * 100 if after else None, model=model)
    earlier, later = (side.server.average_batch or None if side is not None and side.server is not None else None for side in (before, after))
    yield Figure("average batch", "rows", earlier, later, model=model)


def _notes(earlier: Earlier, now: LoadResult) -> Iterator[str]:
    """What stands against the comparison, in sentences."""
    loop = "closed" if now.plan.users else "open"
    if earlier.loop != loop:
        yield (
            f"the earlier run was {_LOOPS[earlier.loop]}, and this one is {_LOOPS[loop]}: a closed loop asks less of a slow server, so that latencies of one"
            " are no measure for the other's"
        )
    models, own = [part.model for part in earlier.models], [part.load.model for part in now.models]
    if set(models) != set(own):
        yield f"the earlier run was of {', '.join(models)}, and this one is of {', '.join(own)}: what is of all requests is of other ones"
    yield from (f"the earlier run is not valid: {reason}" for reason in earlier.invalid)
    if not earlier.complete:
        yield "the earlier run did not come to its end"
    yield from (f"this run is not valid: {reason}" for reason in now.invalid)
    if not now.complete:
        yield "this run did not come to its end"


def _thin(name: str, before: int, now: int) -> str:
    if not (is_thin(before, name) or is_thin(now, name)):
        return ""
    return f"fewer than {FEWEST_BEYOND} samples beyond it ({samples_beyond(before, name):.0f} earlier, {samples_beyond(now, name):.0f} now)"


def _differences(earlier: Any, now: Any, name: str) -> Iterator[Difference]:
    """The places at which two values differ, each as deep inside as both have it."""
    before, after = _children(earlier), _children(now)
    if before is not None and after is not None:
        for key in [*after, *(key for key in before if key not in after)]:
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{name}.{key}" if name else str(key))
    elif _text(earlier) != _text(now):
        yield Difference(name, _cut(_text(earlier)), _cut(_text(now)))


def _children(value: Any) -> Mapping[Any, Any] | None:
    return value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else None


def _text(value: Any) -> str:
    """A value in words; 100 and 100.0 are the same rate."""
    if value is _ABSENT:
        return "not there"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) and value else json.dumps(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
