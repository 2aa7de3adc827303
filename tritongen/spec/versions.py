"""Which versions Triton serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, ValidatorFunctionWrapHandler, field_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Strict, setting
from tritongen.spec.values import (
    UINT32_MAX,
    VersionNumber,
    describe,
    order_problems,
    problem,
    together,
)


class VersionPolicy(Strict, json_schema_extra={"examples": [{"policy": "latest", "count": 2}]}):
    """Which version folders Triton serves. Becomes version_policy."""

    policy: Literal["latest", "all", "specific"] = setting(
        "latest: the highest numbers. all: every folder. specific: those listed in versions.",
        default="latest",
        sets="version_policy",
        why="to serve an old and a new version side by side, or to go back to an old one without deleting the new one",
    )
    count: Annotated[int, Field(strict=True, ge=1, le=UINT32_MAX)] = setting(
        "How many of the highest versions, with policy: latest only.",
        default=1,
        sets="version_policy.latest.num_versions",
        why="to keep the version before the newest at hand",
    )
    versions: tuple[VersionNumber, ...] = setting(
        "The version numbers to serve, with policy: specific only.",
        default=(),
        validate_default=True,
        sets="version_policy.specific.versions",
        why="to pin what is served, whatever folders appear",
    )

    @field_validator("versions", mode="wrap")
    @classmethod
    def _versions_fit(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        return together(value, handler, lambda versions, is_whole: _version_problems(versions, info.data.get("policy"), is_whole=is_whole))


def _policy_forms(value: object) -> object:
    """Says what a policy that is no mapping would be as one."""
    meant = ""
    if value in ("latest", "all"):
        meant = f"{{policy: {value}}}"
    elif value == "specific":
        meant = "{policy: specific, versions: [1]}"
    elif isinstance(value, list | tuple) or (isinstance(value, int) and not isinstance(value, bool)):
        meant = f"{{policy: specific, versions: {list(value) if isinstance(value, list | tuple) else [value]}}}"
    if meant:
        raise problem(f"expected a mapping with policy, got {describe(value)}", code="TG010", hint=f"write versions: {meant}")
    return value


PolicyField = Annotated[VersionPolicy, BeforeValidator(_policy_forms)]


def _version_problems(versions: list[int], policy: str | None, *, is_whole: bool) -> Iterator[PydanticCustomError]:
    if policy == "specific" and not versions and is_whole:
        consequence = "Triton would serve no version at all"
        yield problem("policy: specific needs the versions to serve", code="TG009", consequence=consequence, hint="add versions: [1]")
    if policy in ("latest", "all") and versions:
        message = f"versions is for policy: specific, and the policy is {policy}"
        yield problem(message, code="TG015", hint="remove versions, or write policy: specific", beside=("policy",))
    yield from order_problems(versions, "versions")
