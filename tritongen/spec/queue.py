"""What happens to requests that wait."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Forms, Strict, listed, setting
from tritongen.spec.units import Duration, duration_text
from tritongen.spec.values import INT32_MAX, Count32, Flag, PositiveInt, describe, problem, raise_all


class QueuePolicy(Strict, json_schema_extra={"examples": [{"max_queue_size": 64, "default_timeout": "10ms"}]}):
    """How long, and how many, requests may wait in a queue. Becomes one queue policy of dynamic_batching."""

    max_queue_size: Count32 | None = setting(
        "Most requests that wait at once; one that comes on top is rejected at once, as UNAVAILABLE (HTTP 503). Default: no limit.",
        sets="max_queue_size",
        why="a server that is asked for more than it can do answers everybody late; with a bound it answers some in time and tells the others",
    )
    default_timeout_us: Duration | None = setting(
        "How long a request may wait in the queue, with its unit; the time of its execution does not count. Default: for ever.",
        alias="default_timeout",
        sets="default_timeout_microseconds",
        why="an answer that comes too late costs as much as one in time",
    )
    timeout_action: Literal["reject", "delay"] | None = setting(
        "What becomes of a request whose time is over: reject answers UNAVAILABLE (HTTP 503), delay serves it after all others. Default: reject.",
        sets="timeout_action",
        why="delay where a late answer is better than none",
    )
    allow_timeout_override: Flag | None = setting(
        "Whether a request's own timeout counts; it can only be shorter than default_timeout. Default: false.",
        sets="allow_timeout_override",
        why="when clients know best how long an answer is worth something",
    )

    @property
    def delays(self) -> bool:
        """Whether late requests are moved back in the queue, which changes the order of answers."""
        return self.timeout_action == "delay" and bool(self.default_timeout_us)


def _check_levels(value: object) -> object:
    """A mapping whose keys, which are texts in YAML, are the numbers of levels."""
    if not isinstance(value, Mapping):
        raise problem(
            f"expected a mapping of priority levels, got {describe(value)}", code="TG010", hint="write priority_queue_policy: {1: {max_queue_size: 16}}"
        )
    faults = [
        problem(
            f"{str(key)[:60]!r} is not a priority level",
            hint="levels are the numbers from 1, which is served first, to priority_levels",
        )
        for key in value
        if not (re.fullmatch("[1-9][0-9]{0,9}", str(key)) and int(str(key)) <= INT32_MAX)
    ]
    raise_all(faults, value)
    return value


Policies = Annotated[
    Mapping[int, QueuePolicy],
    BeforeValidator(_check_levels),
    Forms(lambda full: [full | {"propertyNames": {"pattern": "^[1-9][0-9]{0,9}$"}}]),
]


class Queue(QueuePolicy, json_schema_extra={"examples": [{"max_queue_size": 64, "default_timeout": "10ms", "priority_levels": 2}]}):
    """The queue of requests that wait for an instance. Becomes dynamic_batching, also where requests are not put together."""

    overload: Literal["none", "reject"] = setting(
        "reject: requests that could not be answered within the slo are turned away: the queue holds one full batch for each copy, and nobody waits longer than"
        " half of the slo's shortest time, or twice max_queue_delay where that is longer. Keys that are given win. Default: none.",
        default="none",
        sets="max_queue_size and default_timeout_microseconds",
        why="the one switch for a server that must keep its slo for whom it serves at all",
    )
    priority_levels: PositiveInt | None = setting(
        "How many levels of priority requests may have; 1 is served first, and always before the others. Default: none.",
        sets="dynamic_batching.priority_levels",
        why="to let some requests overtake others; what never gets its turn needs a timeout",
    )
    default_priority_level: PositiveInt | None = setting(
        "The level of requests that name none. Default: the last one.",
        sets="dynamic_batching.default_priority_level",
        why="so that clients which know nothing of priorities are not the last in the line",
    )
    preserve_ordering: Flag = setting(
        "Answers leave in the order of the requests. Default: false.",
        default=False,
        sets="dynamic_batching.preserve_ordering",
        why="for clients that cannot match answers to requests; it costs throughput with several copies",
    )
    priority_queue_policy: Policies = setting(
        "The policies of single priority levels, by level. A level that is not here has the keys above; one that is here has its own instead of them.",
        default_factory=dict,
        sets="dynamic_batching.priority_queue_policy",
        why="to bound how much, or how long, requests of one level may wait",
    )

    @field_validator("overload")
    @classmethod
    def _late_ones_are_rejected(cls, overload: str, info: ValidationInfo) -> str:
        if overload == "reject" and info.data.get("timeout_action") == "delay":
            raise _kept(None)
        return overload

    @field_validator("default_priority_level")
    @classmethod
    def _default_is_a_level(cls, level: int | None, info: ValidationInfo) -> int | None:
        levels = info.data.get("priority_levels")
        if level is not None and levels is not None and level > levels:
            raise problem(
                f"default_priority_level is {level}, and priority_levels is {levels}",
                code="TG015",
                consequence="Triton refuses to load the model",
                hint=f"write a level from 1 to {levels}, or raise priority_levels to {level}",
                beside=("priority_levels",),
            )
        return level

    @field_validator("preserve_ordering")
    @classmethod
    def _nobody_overtakes(cls, preserve: bool, info: ValidationInfo) -> bool:
        if not preserve:
            return preserve
        faults = []
        if (info.data.get("priority_levels") or 0) > 1:
            message = f"preserve_ordering keeps the order of requests, and priority_levels: {info.data['priority_levels']} lets some overtake others"
            faults.append(_disorder(message, "remove preserve_ordering, or priority_levels", "priority_levels"))
        if info.data.get("timeout_action") == "delay" and info.data.get("default_timeout_us"):
            message = "preserve_ordering keeps the order of requests, and timeout_action: delay moves late ones back"
            faults.append(_disorder(message, "write timeout_action: reject, or remove preserve_ordering", "timeout_action"))
        raise_all(faults, preserve)
        return preserve

    @field_validator("priority_queue_policy")
    @classmethod
    def _policies_fit(cls, policies: Mapping[int, QueuePolicy], info: ValidationInfo) -> Mapping[int, QueuePolicy]:
        problems = list(_policy_problems(policies, info.data.get("priority_levels"), preserve=bool(info.data.get("preserve_ordering"))))
        if info.data.get("overload") == "reject":
            problems += [_kept(level) for level, policy in policies.items() if policy.timeout_action == "delay"]
        raise_all(problems, policies)
        return policies


def _kept(level: int | None) -> PydanticCustomError:
    """Requests that `overload: reject` would turn away are kept by a key beside it, or by the policy of a level."""
    whose = "timeout_action" if level is None else f"the timeout_action of level {level}"
    return problem(
        f"overload: reject turns late requests away, and {whose} is delay, which serves them after all others",
        code="TG015",
        consequence="under load more and more requests that are too late anyway would be served",
        hint="write timeout_action: reject, or remove overload and state max_queue_size and default_timeout",
        beside=("timeout_action" if level is None else "overload",),
    )


def _disorder(message: str, hint: str, other: str) -> PydanticCustomError:
    return problem(message, code="TG015", consequence="Triton refuses to load the model", hint=hint, beside=(other,))


def _policy_problems(policies: Mapping[int, QueuePolicy], levels: int | None, *, preserve: bool) -> Iterator[PydanticCustomError]:
    """Policies of levels that there are not, and policies that change the order of answers where it is to be kept."""
    above = sorted(level for level in policies if levels is not None and level > levels)
    if above:
        yield problem(
            f"there is a policy for level {listed(above)}, and priority_levels is {levels}",
            code="TG015",
            consequence="Triton refuses to load the model",
            hint=f"write levels from 1 to {levels}, or raise priority_levels to {above[-1]}",
            beside=("priority_levels",),
        )
    for level, policy in policies.items():
        if preserve and policy.delays:
            late = duration_text(policy.default_timeout_us or 0)
            message = f"preserve_ordering keeps the order of requests, and the policy of level {level} moves those back that waited {late}"
            yield _disorder(message, "write timeout_action: reject there, or remove preserve_ordering", "preserve_ordering")
