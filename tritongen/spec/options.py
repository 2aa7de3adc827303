"""Values as options of tritonserver take them: whole seconds and milliseconds, addresses, ports, cores, settings of backends."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from tritongen.spec.units import DURATION_PATTERN, Duration, duration_text
from tritongen.spec.values import CONTROL_CHARACTERS, INT32_MAX, describe, problem


def _whole(unit_us: int, unit: str, who: str = "the server's option") -> AfterValidator:
    """A check that a duration, in microseconds, is a whole number of units, at least 1 and at most an int32: what `who` counts in."""

    def check(value_us: int) -> int:
        if value_us % unit_us or not 1 <= value_us // unit_us <= INT32_MAX:
            least, most = duration_text(unit_us), duration_text(INT32_MAX * unit_us)
            raise problem(
                f"{duration_text(value_us)} cannot be stated: {who} counts in whole {unit}, from {least} to {most}",
                hint=f"write a multiple of {least}",
            )
        return value_us

    return AfterValidator(check)


_DURATION = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["15s"]})
Seconds = Annotated[Duration, _whole(1_000_000, "seconds"), _DURATION]
"""A duration of whole seconds, read as microseconds."""
WholeSeconds = Annotated[Duration, _whole(1_000_000, "seconds", "the deployment"), _DURATION]
"""The same for what is no option of the server's."""
Milliseconds = Annotated[Duration, _whole(1_000, "milliseconds"), _DURATION]
"""A duration of whole milliseconds, read as microseconds."""


def _check_address(value: str) -> str:
    try:
        if "%" in value:
            raise ValueError("the zone of an address")
        return str(ipaddress.ip_address(value))
    except ValueError as error:
        hint = "write 127.0.0.1 for this machine alone, 0.0.0.0 for every network that it is in, or its number in one of them"
        raise problem(f"{value[:60]!r} is not the number of a network interface, such as 127.0.0.1", hint=hint) from error


Address = Annotated[str, AfterValidator(_check_address), WithJsonSchema({"type": "string", "examples": ["127.0.0.1", "0.0.0.0"]})]  # noqa: S104 - an example
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]

_CORES = r"[0-9]{1,5}-[0-9]{1,5}(,[0-9]{1,5}-[0-9]{1,5})*"


def _check_cpu_cores(value: str) -> str:
    if not re.fullmatch(_CORES, value):
        raise problem(f"{value[:60]!r} are no CPU cores", hint="write the first and the last core of each range, such as 0-7 or 0-3,8-11")
    for first, last in core_ranges(value):
        if first > last:
            raise problem(f"{first}-{last} holds no core: it ends before it begins", hint=f"write {last}-{first}")
    return value


def core_ranges(cores: str) -> list[tuple[int, int]]:
    """The first and the last number of each range of CPU cores, such as those of 0-3,8-11."""
    return [(int(first), int(last)) for first, _, last in (text.partition("-") for text in cores.split(","))]


CpuCores = Annotated[str, AfterValidator(_check_cpu_cores), WithJsonSchema({"type": "string", "pattern": f"^{_CORES}$"})]


def _check_backend_value(value: object) -> str:
    """The text that a backend gets for a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise problem(f"a backend's setting is a text, a number, true or false, not {describe(value)}", code="TG010", hint="write one value")
    if CONTROL_CHARACTERS.search(value):
        raise problem(f"the value {value[:60]!r} holds a control character", hint="write it without")
    return value


def _check_backend_key(value: str) -> str:
    if not value or CONTROL_CHARACTERS.search(value) or "," in value or "=" in value:
        raise problem(
            f"{value[:60]!r} cannot be written in the server's --backend-config=<backend>,<setting>=<value>",
            consequence="the server ends the backend's name at the first ',' and the setting's at the first '='",
            hint="write the name alone",
        )
    return value


BackendKey = Annotated[str, AfterValidator(_check_backend_key), WithJsonSchema({"type": "string", "pattern": r"^[^,=\x00-\x1f\x7f]+$"})]
BackendValue = Annotated[str, BeforeValidator(_check_backend_value), WithJsonSchema({"type": ["string", "number", "boolean"]})]
