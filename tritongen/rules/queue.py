"""Rules: priorities, timeouts and order in the queue of the dynamic batcher; `server_features` has the rest of the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.known_issues import find_issue
from tritongen.rules import server_features
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_DELAY = 1
_BROKEN_ORDER = find_issue("order-not-kept")


def _policies(context: ModelContext) -> Iterator[tuple[str, Key, Any]]:
    """The queue policies: how to call each, where it is, and itself."""
    batching = context.config.dynamic_batching
    if batching.HasField("default_queue_policy"):
        yield "default_queue_policy", ("dynamic_batching", "default_queue_policy"), batching.default_queue_policy
    for level in sorted(batching.priority_queue_policy):
        yield f"priority_queue_policy of level {level}", ("dynamic_batching", "priority_queue_policy", level), batching.priority_queue_policy[level]


def _delays(policy: Any) -> bool:
    return bool(policy.timeout_action == _DELAY and policy.default_timeout_microseconds)


def _levels(context: ModelContext) -> Iterator[Finding]:
    batching = context.config.dynamic_batching
    levels = batching.priority_levels
    if not levels:
        return
    default = batching.default_priority_level
    if not 1 <= default <= levels:
        found = f"default_priority_level is {default}" if default else "there is no default_priority_level"
        key = ("dynamic_batching", "default_priority_level") if default else ("dynamic_batching", "priority_levels")
        hint = f"write `default_priority_level: {(levels + 1) // 2}`, or another of 1 (highest) to {levels}; it is what requests without a priority get"
        yield Finding(f"priority_levels is {levels} and {found}; expected 1 to {levels}", key, hint)
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            message = f"priority_queue_policy has the level {level}; with priority_levels {levels}, levels are 1 to {levels}"
            yield Finding(message, ("dynamic_batching", "priority_queue_policy", level), f"write a level of 1 to {levels}, or raise priority_levels")


def _without_levels(context: ModelContext) -> Iterator[Finding]:
    batching = context.config.dynamic_batching
    if batching.priority_levels:
        return
    if batching.default_priority_level:
        message = f"default_priority_level is {batching.default_priority_level}, and there are no priority_levels"
        yield Finding(message, ("dynamic_batching", "default_priority_level"), "write `priority_levels: N` as well, or remove it")
    for label, key, policy in _policies(context):
        if key[1] == "priority_queue_policy" and not (batching.preserve_ordering and _delays(policy)):
            yield Finding(
                f"there is a {label}, and there are no priority_levels",
                key,
                "write `priority_levels: N` and `default_priority_level`, or use default_queue_policy",
            )


def _order(context: ModelContext) -> Iterator[Finding]:
    batching = context.config.dynamic_batching
    if not batching.preserve_ordering:
        return
    if batching.priority_levels > 1:
        message = f"preserve_ordering with {batching.priority_levels} priority_levels: requests that overtake others cannot be answered in order"
        yield Finding(message, ("dynamic_batching", "preserve_ordering"), "remove preserve_ordering, or the priority levels")
    for label, key, policy in _policies(context):
        if _delays(policy):
            message = f"preserve_ordering, and the {label} moves late requests back in the queue (timeout_action: DELAY)"
            yield Finding(message, (*key, "timeout_action"), "write `timeout_action: REJECT`, or remove preserve_ordering")


def _broken_order(context: ModelContext) -> Iterator[Finding]:
    release = context.server.release
    batching = context.config.dynamic_batching
    refused = any(True for _ in _order(context))
    if release is None or refused or not batching.preserve_ordering or not _BROKEN_ORDER.holds_in(release):
        return
    yield Finding(f"in release {release.name} {_BROKEN_ORDER.text}", ("dynamic_batching", "preserve_ordering"), _BROKEN_ORDER.advice)


def _without_timeout(context: ModelContext) -> Iterator[Finding]:
    for label, key, policy in _policies(context):
        unused_level = key[1] == "priority_queue_policy" and not context.config.dynamic_batching.priority_levels
        if policy.default_timeout_microseconds or unused_level:
            continue
        for field, set_, effect in (
            ("allow_timeout_override", policy.allow_timeout_override, "a request may only shorten the default timeout, and there is none"),
            ("timeout_action", policy.timeout_action == _DELAY, "no request ever times out"),
        ):
            if set_:
                message = f"{field} in the {label} has no effect without default_timeout_microseconds: {effect}"
                yield Finding(message, (*key, field), "write `default_timeout_microseconds: N` with the longest time that a request may wait, in microseconds")
                break


RULES: tuple[Rule, ...] = (
    Rule(
        "TG270",
        "invalid-priority-level",
        Consequence.REFUSED,
        "Where there are priority_levels, the default level and the levels of policies are 1 to that number.",
        "priority_levels makes default_priority_level obligatory: 0, the value of an absent one, is out of range (`ValidateModelConfig`, "
        "core/src/model_config_utils.cc).",
        "dynamic_batching { priority_levels: 2 }",
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 }",
        check=_levels,
    ),
    Rule(
        "TG271",
        "priority-without-levels",
        Consequence.IGNORED,
        "A default priority level and policies by priority need priority_levels.",
        "With priority_levels 0 there is one queue, with default_queue_policy; the rest is loaded and never looked at (core/src/dynamic_batch_scheduler.cc; "
        "tried on 24.10).",
        "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 16 } } }",
        "dynamic_batching { default_queue_policy { max_queue_size: 16 } }",
        check=_without_levels,
    ),
    Rule(
        "TG272",
        "order-against-priorities",
        Consequence.REFUSED,
        "preserve_ordering goes with at most one priority level, and with no policy that delays late requests.",
        "`ValidateModelConfig` (core/src/model_config_utils.cc) refuses both; policies count even where there are no priority levels, and DELAY only with a "
        "timeout (tried on 24.10).",
        "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 2 }",
        "dynamic_batching { preserve_ordering: true }",
        check=_order,
    ),
    Rule(
        "TG273",
        "order-in-a-broken-release",
        Consequence.MISBEHAVES,
        "preserve_ordering needs a release that keeps it: not 25.09 to 26.07.",
        "From 25.09 on a response's place was reserved when it was finished, not when its request arrived (triton-inference-server/core pull request 449); "
        "mended in 26.08 (520, 523).",
        "# --release 25.10\ndynamic_batching { preserve_ordering: true }",
        "# --release 26.08\ndynamic_batching { preserve_ordering: true }",
        check=_broken_order,
        needs=frozenset({"config", "release"}),
    ),
    Rule(
        "TG274",
        "timeout-without-default",
        Consequence.IGNORED,
        "allow_timeout_override and timeout_action need default_timeout_microseconds.",
        "A request's own timeout counts only if it is shorter than the default, and a default of 0 means none: it never counts "
        "(core/src/scheduler_utils.cc; tried on 24.10: four requests with a "
        "timeout of 1 ms waited 0.3 s each and were all answered).",
        "dynamic_batching { default_queue_policy { allow_timeout_override: true } }",
        "dynamic_batching { default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 500000 } }",
        check=_without_timeout,
    ),
    *server_features.RULES,
)
