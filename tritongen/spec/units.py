"""Durations, sizes and parts of a whole as people write them: `2ms`, `1.5s`, `512MB`, `4GiB`, `0.1%`.

A bare number is refused everywhere: nobody can tell from `max_queue_delay: 2` whether two microseconds or two seconds were meant. Values are exact:
text is never read as a float.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

DURATION_UNITS: Mapping[str, int] = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
"""Microseconds per unit."""

SIZE_UNITS: Mapping[str, int] = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
"""Bytes per unit."""

_TOGETHER = "write the number and its unit together"
_LARGEST = 2**63 - 1  # the largest value that fits both Triton's int64 and its uint64 fields
_NUMBER = r"[0-9]{1,19}(?:\.[0-9]{1,19})?"
_QUANTITY = re.compile(rf"(?P<sign>[+-]?)(?P<number>{_NUMBER}) ?(?P<unit>[A-Za-z]*)")


class UnitError(ValueError):
    """A text that is no quantity: what is wrong with it, and what to write."""

    def __init__(self, message: str, hint: str = _TOGETHER) -> None:
        super().__init__(message)
        self.hint = hint


def _pattern(units: Mapping[str, int]) -> str:
    """The JSON Schema pattern of a quantity in these units."""
    return rf"^{_NUMBER} ?({'|'.join(units)})$"


DURATION_PATTERN = _pattern(DURATION_UNITS)
SIZE_PATTERN = _pattern(SIZE_UNITS)
PERCENT_PATTERN = r"^[0-9]{1,2}(\.[0-9]{1,6})? ?%$"
_PERCENT = re.compile(r"(?P<number>[0-9]{1,2}(?:\.[0-9]{1,6})?) ?%")


def parse_duration(value: object) -> int:
    """Microseconds meant by a text such as `500us`, `2ms`, `1.5s`, `1m` or `1h`.

    Raises UnitError for a bare number, an unknown unit, a negative or too large value, and for a fraction of a microsecond: the message names the units.
    """
    return _parse(value, DURATION_UNITS, what="duration", example="2ms", smallest="microsecond")


def parse_size(value: object) -> int:
    """Bytes meant by a text such as `512MB` (powers of 1000) or `4GiB` (powers of 1024).

    Raises UnitError for a bare number, an unknown unit, a negative or too large value, and for a fraction of a byte: the message names the units.
    """
    return _parse(value, SIZE_UNITS, what="size", example="4GiB", smallest="byte")


def parse_percent(value: object) -> float:
    """The part of 1 meant by a text such as `0.1%` or `5 %`, or by 0, which needs no unit: below 1.

    Raises UnitError for any other bare number, for what is no percentage, and for 100 % or more.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value == 0:
            return 0.0
        raise UnitError(f"{value} has no unit; a part of all requests is written like 0.1%", "write the number and a % together")
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        shown = f"{value[:60]!r} is not" if isinstance(value, str) else "expected"
        raise UnitError(f"{shown} a percentage from 0% to below 100%, with at most six decimals, like 0.1%", "write a part such as 0.1%")
    return float(Fraction(match["number"]) / 100)


def duration_text(microseconds: int) -> str:
    """A duration as people write it, exact: `500us`, `2.5ms`, `1.5s`, and whole minutes and hours: `10h`. `parse_duration` reads it back."""
    for long in ("h", "m"):
        if microseconds and microseconds % DURATION_UNITS[long] == 0:
            return f"{microseconds // DURATION_UNITS[long]}{long}"
    unit = next(unit for unit in ("s", "ms", "us") if microseconds >= DURATION_UNITS[unit] or unit == "us")
    whole, rest = divmod(microseconds, DURATION_UNITS[unit])
    digits = f"{rest:0{len(str(DURATION_UNITS[unit])) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}{f'.{digits}' if digits else ''}{unit}"


def about_size(count: float) -> str:
    """A number of bytes for people, to three digits or so: `512 B`, `10.3 MiB`, `4.00 GiB`."""
    unit = next((unit for unit in ("TiB", "GiB", "MiB", "KiB") if count >= SIZE_UNITS[unit]), "B")
    value = count / SIZE_UNITS[unit]
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def _parse(value: object, units: Mapping[str, int], *, what: str, example: str, smallest: str) -> int:
    """The value in the smallest unit. Raises UnitError with a sentence for people."""
    known = ", ".join(units)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise UnitError(f"{value} has no unit; a {what} is written like {example} (units: {known})")
    if not isinstance(value, str):
        raise UnitError(f"expected a {what} such as {example} (units: {known})")
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise UnitError(f"{value[:60]!r} is not a {what}; it is written as a number and a unit, like {example} (units: {known})")
    if match["sign"]:
        kind = "negative" if match["sign"] == "-" else "written with a sign"
        raise UnitError(f"{value!r} is {kind}; a {what} is zero or more, like {example}", "write it without a sign")
    unit = match["unit"]
    if not unit:
        raise UnitError(f"{value!r} has no unit; a {what} is written like {example} (units: {known})")
    if unit not in units:
        raise UnitError(f"{value!r} has the unknown unit {unit!r}; a {what} has one of {known}", f"write one of {known}")
    exact = Fraction(match["number"]) * units[unit]
    if exact > _LARGEST:
        raise UnitError(f"{value!r} is too large: Triton counts at most {_LARGEST} {smallest}s", "write a smaller one")
    if exact.denominator != 1:
        nearest = f"{max(1, round(exact))}{next(iter(units))}"
        raise UnitError(f"{value!r} is not a whole number of {smallest}s, which is the smallest unit there is", f"write {nearest}")
    return int(exact)


def _as_duration(value: object) -> int:
    """`parse_duration` for pydantic."""
    try:
        return parse_duration(value)
    except UnitError as error:
        raise _unit_problem(error) from error


def _as_size(value: object) -> int:
    """`parse_size` for pydantic."""
    try:
        return parse_size(value)
    except UnitError as error:
        raise _unit_problem(error) from error


def _as_percent(value: object) -> float:
    """`parse_percent` for pydantic."""
    try:
        return parse_percent(value)
    except UnitError as error:
        raise _unit_problem(error) from error


def _unit_problem(error: UnitError) -> PydanticCustomError:
    return PydanticCustomError("unit", "{message}", {"message": str(error), "hint": error.hint})


Duration = Annotated[int, BeforeValidator(_as_duration), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["500us", "2ms", "1.5s"]})]
"""A field that is written with a unit and read as whole microseconds."""

Size = Annotated[int, BeforeValidator(_as_size), WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "examples": ["512MB", "4GiB"]})]
"""A field that is written with a unit and read as whole bytes."""


def _check_some(value: int) -> int:
    if value == 0:
        raise _unit_problem(UnitError("a size of 0 is no memory at all; it is written like 4GiB", "write a size above 0, or leave the key out"))
    return value


SomeSize = Annotated[
    Size,
    AfterValidator(_check_some),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN.replace("^", r"^(?![0.]+ ?[A-Za-z]+$)", 1), "examples": ["512MB", "4GiB"]}),
]
"""A size that is not zero."""

Percent = Annotated[
    float,
    BeforeValidator(_as_percent),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": PERCENT_PATTERN, "examples": ["0.1%", "1%"]}, {"const": 0}]}),
]
"""A field that is written as a percentage, or as 0, and read as a part of 1 below 1."""
