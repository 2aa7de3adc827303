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
from tritongen.load.recorder import summary
from tritongen.load.result import SCHEMA_VERSION, LoadResult
from tritongen.load.verdict import FEWEST_BEYOND, is_thin, samples_beyond
from tritongen.sources import read_text

_LONGEST_VALUE = 80
_MOST_PROBLEMS = 10
_ABSENT = object()


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)


class EarlierLatency(_Part):
    """Percentiles in milliseconds; None where nothing was answered."""

    count: int = Field(ge=0)
    p50: float | None = Field(default=None, ge=0)
    p90: float | None = Field(default=None, ge=0)
    p99: float | None = Field(default=None, ge=0)
    p99_9: float | None = Field(default=None, ge=0, alias="p99.9")

    def measures(self) -> Mapping[str, float | None]:
        """By their names in a result."""
        return {"p50": self.p50, "p90": self.p90, "p99": self.p99, "p99.9": self.p99_9}


class EarlierServer(_Part):
    """What the server counted."""

    average_batch: float = Field(ge=0)


class EarlierModel(_Part):
    """One model's part of the run."""

    model: str
    server: EarlierServer | None


class Earlier(_Part):
    """What a comparison needs of a result that `LoadResult.to_json` wrote."""

    schema_version: Literal[1] = Field(alias="schema")
    started: str
    versions: dict[str, str]
    settings: dict[str, JsonValue]
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
    """

    name: str
    unit: str
    earlier: float | None
    now: float | None
    note: str = ""

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

    Raises InputError: TG001 to TG003 where it is no readable text, TG422 with everything that is wrong where it is no result of a load test.
    """
    text = read_text(path).text
    try:
        document = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _refused(path, [f"this is no whole JSON document: {error}"]) from error
    if isinstance(document, dict) and "probes" in document:
        document = document.get("result")
        if document is None:
            raise _refused(path, ["this search kept no rate, so that it has no result to compare with"])
    try:
        return Earlier.model_validate(document)
    except ValidationError as error:
        raise _refused(path, [_words(dict(problem)) for problem in error.errors(include_url=False, include_input=False)]) from error


def _refused(path: Path, messages: Sequence[str]) -> InputError:
    hint = "give a file that `tritongen load -o FILE.json` wrote"
    return InputError([Diagnostic("TG422", message, Location(str(path)), hint=hint) for message in messages[:_MOST_PROBLEMS]])


def _words(problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    if place == "schema":
        return f"this is no result of a load test in version {SCHEMA_VERSION} of its schema: its key 'schema' is missing or another"
    where = f"'{place}'" if place else "the document"
    return f"this is no whole result of a load test: {where}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def compare(earlier: Earlier, path: Path, now: LoadResult) -> Comparison:
    """An earlier result beside this one."""
    latency = summary(now.latencies())
    figures = [Figure("rate", "/s", earlier.rate, now.rate)]
    for name, before in earlier.latency_ms.measures().items():
        figures.append(Figure(name, "ms", before, latency.get(name), _thin(name, earlier.latency_ms.count, latency["count"])))
    figures.append(Figure("errors", "%", earlier.error_rate * 100, now.error_rate * 100))
    before_by_model = {part.model: part.server.average_batch for part in earlier.models if part.server}
    for part in now.models:
        name = f"average batch of {part.load.model}" if len(now.models) > 1 else "average batch"
        figures.append(Figure(name, "rows", before_by_model.get(part.load.model) or None, (part.server.average_batch or None) if part.server else None))
    notes = [f"the earlier run is not valid: {reason}" for reason in earlier.invalid]
    notes += [] if earlier.complete else ["the earlier run did not come to its end"]
    notes += [f"this run is not valid: {reason}" for reason in now.invalid]
    notes += [] if now.complete else ["this run did not come to its end"]
    differences = (*_differences(earlier.settings, now.settings, ""), *_differences(earlier.versions, dict(now.versions), "versions"))
    return Comparison(str(path), earlier.started, tuple(figures), differences, tuple(notes))


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
