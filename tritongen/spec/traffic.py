"""What a load test sends, as people write it: `100-400:1m`, `1:70%,8:30%`, `p99=20ms`. One owner for the options of `tritongen load` and the keys of `load:`.

Each parser takes one text and raises TrafficError, in a sentence, for what is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import NamedTuple

from tritongen.spec.units import parse_duration

MOST_RATE = 1_000_000.0
"""Requests a second: more than a host can send."""

MOST_SECONDS = 30 * 86_400.0
"""Seconds of a whole run: what takes longer than 30 days was meant otherwise."""

MOST_COMBINATIONS = 100_000
"""Combinations of the sizes of several inputs."""

_DIMENSION = r"[1-9][0-9]{0,18}"
_PART = r"[0-9]{1,9}(?:\.[0-9]{1,9})?%?"
ERROR_RATE_PATTERN = r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%|0(?:\.0+)?"
_RATE = r"[0-9]{1,7}(?:\.[0-9]{1,9})?"
STAGE_PATTERN = rf"{_RATE}(?:-{_RATE})?:[0-9]{{1,19}}(?:\.[0-9]{{1,19}})? ?(?:us|ms|s|m|h)"
BATCH_PART_PATTERN = rf"[1-9][0-9]*(?::{_PART})?"
SHAPE_PART_PATTERN = rf"{_DIMENSION}(?:x{_DIMENSION})*(?::{_PART})?"
MEASURE_PATTERN = r"(?:p(?!0+(?:\.0+)?$)[0-9]{1,2}(?:\.[0-9]{1,3})?|mean|max|error_rate)"
ARRIVALS_PATTERN = r"(?:poisson|constant|trace:.+)"
_SLO_HINT = "write p99=20ms, p99.9=50ms, mean=5ms, max=1s or error_rate=0.1%, with commas between"

Mix = tuple[tuple[str, float], ...]
Shapes = Mapping[str, Sequence[int]]
SizeMix = Sequence[tuple[Sequence[int], float]]
ShapeMix = tuple[tuple[Shapes, float], ...]


class TrafficError(ValueError):
    """A text that says nothing about a load test: what is wrong with it, and what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Step(NamedTuple):
    """A part of an open loop: requests a second at its beginning and its end, with an even change in between, and its length in seconds."""

    rate: float
    end_rate: float
    seconds: float


@dataclass(frozen=True)
class Promises:
    """What a run must keep. `percentiles` maps `p99`, `mean`, `max` and the like to milliseconds; `error_rate` is a part of 1, None where none is promised."""

    percentiles: Mapping[str, float] = field(default_factory=dict)
    error_rate: float | None = None

    def __bool__(self) -> bool:
        return bool(self.percentiles) or self.error_rate is not None


def parse_rate(text: str) -> float:
    """Requests a second, such as `200` or `0.5`."""
    rate = float(text) if re.fullmatch(_RATE, text) else 0.0
    if not 0 < rate <= MOST_RATE:
        raise TrafficError(f"'{text[:60]}' is no rate: it is a number of requests a second above 0 and up to {MOST_RATE:.0f}", "write a rate such as 200")
    return rate


def too_long(seconds: float, what: str) -> str:
    """What is wrong with a length of time, in a sentence; empty where nothing is."""
    return f"{what} is {seconds:.0f} s, and a load test may take 30 days ({MOST_SECONDS:.0f} s)" if seconds > MOST_SECONDS else ""


def _entries(text: str, what: str, hint: str) -> list[str]:
    """What stands between the commas of a text."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        where = "is empty" if len(entries) == 1 else f"'{text.strip()[:60]}' has a comma too many: nothing stands beside it"
        raise TrafficError(f"the {what} {where}", hint)
    return entries


def parse_steps(text: str) -> tuple[Step, ...]:
    """Rates after one another, such as `100:30s,100-400:1m`: a rate, or a rate that changes, and for how long."""
    hint = "write RATE:DURATION, or FROM-TO:DURATION for a ramp, with commas between, such as 100:30s,100-400:1m"
    steps = []
    for part in _entries(text, "list of stages", hint):
        rates, _, duration = part.partition(":")
        first, _, second = rates.partition("-")
        if not all(re.fullmatch(_RATE, rate) for rate in (first, second or first)):
            raise TrafficError(f"'{part.strip()[:60]}' is no stage: '{rates[:30]}' is no number of requests a second", hint)
        try:
            step = Step(float(first), float(second or first), parse_duration(duration) / 1e6)
        except ValueError as error:
            raise TrafficError(f"'{part.strip()[:60]}' is no stage: {error}", hint) from error
        if not (step.rate <= MOST_RATE and step.end_rate <= MOST_RATE and step.rate + step.end_rate > 0) or step.seconds <= 0:
            raise TrafficError(f"'{part.strip()[:60]}' is no stage: rates are above 0 and up to {MOST_RATE:.0f}, and it takes some time", hint)
        steps.append(step)
    if wrong := too_long(sum(step.seconds for step in steps), "the length of all stages"):
        raise TrafficError(wrong, "write shorter ones")
    return tuple(steps)


def parse_mix(text: str) -> Mix:
    """A mix such as `1:70%,8:30%`, with the part of 1 of each value; parts may be left out where there is one entry, and need not make 100 %."""
    hint = "write VALUE:PART%, with commas between, such as 1:70%,8:30%"
    entries = []
    for entry in (written := _entries(text, "mix", hint)):
        value, _, part = entry.partition(":")
        if not value or (part and not re.fullmatch(_PART, part)) or (not part and len(written) > 1):
            raise TrafficError(f"'{entry[:60]}' is no part of a mix", hint)
        entries.append((value, Fraction(part.removesuffix("%") or 1)))
    if 0 < sum("%" in entry for entry in written) < len(entries):
        raise TrafficError(f"some parts of '{text[:60]}' are percentages and some are not, so that nobody can tell what they make of a whole", hint)
    total = sum((part for _, part in entries), Fraction(0))
    if not total:
        raise TrafficError(f"the parts of '{text[:60]}' make nothing", hint)
    return tuple((value, float(part / total)) for value, part in entries)


def parse_batch_mix(text: str) -> tuple[tuple[int, float], ...]:
    """Rows of a request with their parts of 1: `8`, or `1:70%,8:30%`."""
    mix = parse_mix(text)
    if not all(re.fullmatch("[1-9][0-9]{0,8}", rows) for rows, _ in mix):
        raise TrafficError(f"'{text[:60]}' is no mix of batches: a batch is a whole number of rows", "write rows with their parts, such as 1:70%,8:30%")
    return tuple((int(rows), part) for rows, part in mix)


def parse_sizes(text: str) -> tuple[int, ...]:
    """The sizes of one item, without the batch dimension: `3x48x320`."""
    if not re.fullmatch(f"{_DIMENSION}(?:x{_DIMENSION})*", text):
        raise TrafficError(f"'{text[:60]}' is no shape", "write sizes with x between them, such as 3x48x320")
    return tuple(map(int, text.split("x")))


def parse_shape_mix(text: str) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Sizes of one input with their parts of 1: `3x48x320`, or `3x48x320:70%,3x48x640:30%`."""
    return tuple((parse_sizes(sizes), part) for sizes, part in parse_mix(text))


def combined(mixes: Mapping[str, SizeMix]) -> ShapeMix:
    """Every combination of the inputs' shapes, with the product of their parts; empty without any input."""
    if not mixes:
        return ()
    if prod(map(len, mixes.values())) > MOST_COMBINATIONS:
        message = f"the sizes of {', '.join(mixes)} have more than {MOST_COMBINATIONS:,} combinations"
        raise TrafficError(message[:300], "mix fewer sizes of each input")
    return tuple(
        ({name: tuple(sizes) for name, (sizes, _) in zip(mixes, chosen, strict=True)}, prod(part for _, part in chosen)) for chosen in product(*mixes.values())
    )


def parse_promise(name: str, value: str) -> tuple[str, float]:
    """A measure of an SLO by its one name (`p99.0` is `p99`), and what it must keep: milliseconds; a part of 1 for `error_rate`."""
    shown = f"'{name[:30]}={value[:30]}' is no part of an SLO"
    if not re.fullmatch(MEASURE_PATTERN, name):
        raise TrafficError(f"{shown}: there is no such measure", _SLO_HINT)
    if name == "error_rate":
        match = re.fullmatch(ERROR_RATE_PATTERN, value)
        part = float(match[1] or 0) / 100 if match else -1.0
        if not 0 <= part <= 1:
            raise TrafficError(f"{shown}: it is a percentage with its sign, between 0 and 100 %", _SLO_HINT)
        return name, part
    try:
        milliseconds = parse_duration(value) / 1000
    except ValueError as error:
        raise TrafficError(f"{shown}: {error}", _SLO_HINT) from error
    if not milliseconds:
        raise TrafficError(f"{shown}: every request takes some time", _SLO_HINT)
    return (f"p{float(name[1:]):g}" if name.startswith("p") else name), milliseconds


def promises(measures: Mapping[str, float]) -> Promises:
    """The values of `parse_promise` by name as one value."""
    return Promises({name: value for name, value in measures.items() if name != "error_rate"}, measures.get("error_rate"))


def parse_slo(text: str) -> Promises:
    """An SLO such as `p99=20ms,error_rate=0.1%`."""
    found: dict[str, float] = {}
    for entry in _entries(text, "SLO", _SLO_HINT):
        written, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or written.endswith(("<", ">", ":")):
            raise TrafficError(f"'{entry[:60]}' is no part of an SLO: between a measure and what it must keep stands =", _SLO_HINT)
        name, limit = parse_promise(written, value)
        if name in found:
            raise TrafficError(f"'{name}' stands twice in the SLO '{text[:60]}'", "keep one of them")
        found[name] = limit
    return promises(found)


def parse_arrivals(text: str) -> tuple[str, str]:
    """How an open loop's requests are spread, and the file of a trace: `poisson`, `constant`, or `trace:FILE`."""
    kind, _, path = text.partition(":")
    if kind not in ("poisson", "constant", "trace") or bool(path) != (kind == "trace"):
        raise TrafficError(f"'{text[:60]}' are no arrivals", "write poisson, constant or trace:FILE")
    return kind, path
