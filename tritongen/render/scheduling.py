"""`batching` and `queue` of a model → `dynamic_batching` of its config, and the settings of `optimization` that go with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.batching import Batching
from tritongen.modelconfig import ModelQueuePolicy
from tritongen.render.findings import Findings, Key
from tritongen.render.placement import placed_groups
from tritongen.render.queueing import Overload, Policy, judge_delay, judge_timeout, overload_limits, policies
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.queue import Queue, QueuePolicy
from tritongen.spec.slo import Slo
from tritongen.spec.units import duration_text


def few_sizes(model: ModelSpec, signature: Signature) -> str:
    """Why only few batch sizes of a model are fast; empty where any is as good as another."""
    if signature.convolves and _searches_convolutions(model):
        # 75 ms at each change of size, measured on an H200 with ResNet-50: four times slower than without batching.
        return "convolutions on the CUDA provider are planned anew for each size"
    if (model.backend == "tensorrt" and model.tensorrt.cuda_graphs is not None) or (model.accelerator == "tensorrt" and model.onnxruntime.tensorrt.cuda_graph):
        return "a CUDA graph serves one size"
    return ""


def _searches_convolutions(model: ModelSpec) -> bool:
    """Whether the CUDA provider runs the model, which it does on every GPU without another accelerator, and times each algorithm, which is its default."""
    if model.backend != "onnxruntime" or model.onnxruntime.cuda.cudnn_conv_algo_search not in (None, "exhaustive"):
        return False
    on_gpus = all(group.kind == "gpu" for group in placed_groups(model))
    return model.accelerator == "cuda" or (model.accelerator == "none" and on_gpus)


def add_scheduling(config: Any, model: ModelSpec, batching: Batching, findings: Findings) -> tuple[str, ...]:
    """Write `dynamic_batching` where requests are put together or their queue has settings; the sentences are for the header of the config."""
    _add_gathering(config, model, batching, findings)
    if other := next((key for key in ("sequence_batching", "ensemble_scheduling") if key in model.config), None):
        _refuse_two_schedulers(other, model, findings)
        return ()
    scheduler = config.dynamic_batching
    if batching.dynamic:
        scheduler.preferred_batch_size.extend(batching.preferred)
        scheduler.max_queue_delay_microseconds = batching.max_queue_delay_us
        scheduler.SetInParent()
    overload = _overload(model, batching, findings)
    _add_queue(scheduler, model, overload)
    if not scheduler.ByteSize() and not batching.dynamic:
        config.ClearField("dynamic_batching")
    _say_idle_batching(model, batching, findings)
    _say_idle_queue(model, findings)
    _judge_waits(model, batching, findings)
    return tuple(_remarks(model, batching, overload))


def _refuse_two_schedulers(other: str, model: ModelSpec, findings: Findings) -> None:
    """Settings of the dynamic batcher, whose place another scheduler takes; those from `defaults` are meant for other models."""
    batching, queue = model.batching, model.queue
    stated: dict[Key, bool] = {
        ("queue",): queue != Queue(),
        ("batching", "preferred"): bool(batching.preferred),
        ("batching", "max_queue_delay"): bool(batching.max_queue_delay_us),
    }
    for key in (key for key, given in stated.items() if given):
        name = ".".join(map(str, key))
        message = f"{other} takes the place of dynamic batching, to which {name} belongs, at {findings.locate(key)}"
        if findings.is_inherited(key[:1]):
            findings.idle(key, message, hint=f"nothing, if {name} is meant for other models")
        else:
            findings.error("TG131", ("config", other), message, consequence="Triton refuses a config with two schedulers", hint=f"remove {name}, or {other}")


def _overload(model: ModelSpec, batching: Batching, findings: Findings) -> Overload | None:
    """The limits of `overload: reject`, which need to know what was promised."""
    if model.queue.overload == "none":
        return None
    if model.timed_slo is None:
        findings.error(
            "TG170",
            ("queue", "overload"),
            "overload: reject derives its limits from the times of the slo, and the model has none",
            consequence="without limits, requests wait for ever when there are more than the server can do",
            hint="add slo: {p99: 20ms} with the time that is promised, or state the limits: queue: {max_queue_size: 64, default_timeout: 10ms}",
        )
        return None
    copies = max(1, sum(group.copies for group in placed_groups(model)))
    overload = overload_limits(model.timed_slo, rows=max(1, batching.optimum), delay_us=batching.max_queue_delay_us, copies=copies)
    if overload.is_late and any(not policy.default_timeout_us for _, policy in _used(model.queue)):
        _refuse_late(model.timed_slo, batching.max_queue_delay_us, findings)
    return overload


def _refuse_late(slo: Slo, delay_us: int, findings: Findings) -> None:
    """There is no time that is longer than the delay and leaves something of what was promised."""
    key, limit_us = slo.tightest
    promised = f"slo.{key}: {duration_text(limit_us)} ({findings.locate(('slo', key))})"
    if delay_us:
        delay = f"max_queue_delay: {duration_text(delay_us)} ({findings.locate(('batching', 'max_queue_delay'))})"
        message = f"overload: reject derives how long a request may wait, below {promised}, and {delay} is half of that or more"
        hint = f"write a max_queue_delay below {duration_text(limit_us // 2)}, or state queue: {{default_timeout: ...}}"
    else:
        message = f"overload: reject derives how long a request may wait, below {promised}, and Triton counts whole microseconds"
        hint = "promise a time that an execution can keep"
    consequence = "a request that finds no company would be rejected before its batch is formed, however idle the server is, or answered too late"
    findings.error("TG015", ("queue", "overload"), message, consequence=consequence, hint=hint)


def _used(queue: Queue) -> Iterator[tuple[str, QueuePolicy]]:
    """Every policy that requests wait under, and the key that states it."""
    levels = queue.priority_levels
    if levels is None or len(queue.priority_queue_policy) < levels:
        yield "queue", queue
    for level, policy in sorted(queue.priority_queue_policy.items() if levels is not None else ()):
        yield f"priority_queue_policy.{level}", policy


def _add_queue(scheduler: Any, model: ModelSpec, overload: Overload | None) -> None:
    """Write the settings of the queue; what would have no effect is left out, and `_say_idle_queue` says so."""
    queue = model.queue
    default, by_level = policies(queue, overload)
    if queue.preserve_ordering:
        scheduler.preserve_ordering = True
    if not default.is_empty:
        _write(scheduler.default_queue_policy, default)
    if queue.priority_levels and (queue.priority_levels > 1 or by_level):
        scheduler.priority_levels = queue.priority_levels
        scheduler.default_priority_level = queue.default_priority_level or queue.priority_levels
        for level, policy in by_level.items():
            _write(scheduler.priority_queue_policy[level], policy)


def _write(message: Any, policy: Policy) -> None:
    message.max_queue_size = policy.max_queue_size
    message.default_timeout_microseconds = policy.timeout_us
    if policy.timeout_us:
        message.timeout_action = ModelQueuePolicy.DELAY if policy.delays else ModelQueuePolicy.REJECT
        message.allow_timeout_override = policy.overridable


def _stated(model: ModelSpec) -> Iterator[tuple[Key, QueuePolicy]]:
    """Every policy that the spec states, and where."""
    yield ("queue",), model.queue
    for level, policy in model.queue.priority_queue_policy.items():
        yield ("queue", "priority_queue_policy", str(level)), policy


def _say_idle_queue(model: ModelSpec, findings: Findings) -> None:
    queue = model.queue
    if queue.priority_levels is None:
        for key, given in (("default_priority_level", queue.default_priority_level is not None), ("priority_queue_policy", bool(queue.priority_queue_policy))):
            if given:
                message = f"{key} has no effect without priority_levels: there is one queue for all requests"
                findings.idle(("queue", key), message, hint=f"add priority_levels, or remove {key}")
    if queue.priority_levels == 1 and not queue.priority_queue_policy:
        findings.idle(
            ("queue", "priority_levels"),
            "priority_levels: 1 has no effect: of a single level no request overtakes another",
            hint="write priority_levels: 2 or more, or remove it",
        )
    for place, policy in _stated(model):
        if policy.default_timeout_us == 0:
            message = "default_timeout: 0 has no effect: to Triton it means for ever, as without it"
            findings.idle((*place, "default_timeout"), message, hint="write the longest time that a request may wait, or remove it")
        is_used = place == ("queue",) or queue.priority_levels is not None
        if policy.default_timeout_us or (queue.overload == "reject" and model.timed_slo is not None) or not is_used:
            continue
        for key, reason in (
            ("timeout_action", "no request's time is ever over"),
            ("allow_timeout_override", "a request can only shorten the time, and there is none to shorten"),
        ):
            if getattr(policy, key):
                message = f"{key} has no effect without default_timeout: {reason}"
                findings.idle((*place, key), message, hint=f"add default_timeout with the longest time that a request may wait, or remove {key}")


def _say_idle_batching(model: ModelSpec, batching: Batching, findings: Findings) -> None:
    """Keys of `batching` that are for batches, where there are none; a model that cannot batch has its own finding."""
    asked = model.batching
    if batching.dynamic or batching.blockers:
        return
    off = f"no batches are formed with max: {batching.max_batch_size}"
    for key, given in (("max_queue_delay", bool(asked.max_queue_delay_us)), ("preferred", bool(asked.preferred)), ("eager", asked.eager)):
        if given:
            findings.idle(
                ("batching", key),
                f"{key} has no effect: {off}",
                consequence="Triton executes every request alone, at once",
                hint=f"remove {key}, or set max to at least 2",
            )


def _add_gathering(config: Any, model: ModelSpec, batching: Batching, findings: Findings) -> None:
    """Write how the inputs of a batch come together."""
    asked = model.batching
    if asked.eager and batching.dynamic:
        config.optimization.eager_batching = True
    on_gpu = any(group.kind in ("gpu", "auto") for group in placed_groups(model))
    for key, given in (
        ("pinned_memory", not (asked.pinned_memory.input and asked.pinned_memory.output)),
        ("gather_kernel_buffer_threshold", asked.gather_kernel_buffer_threshold is not None),
    ):
        if given and not on_gpu:
            message = f"{key} has no effect: no instance runs on a GPU, and it is about copies to and from one"
            findings.idle(("batching", key), message, hint=f"remove {key}, or add instances of kind gpu")
    if not on_gpu:
        return
    for direction, field in (("input", config.optimization.input_pinned_memory), ("output", config.optimization.output_pinned_memory)):
        if not getattr(asked.pinned_memory, direction):
            # Absent means true, and false is written as a message without content.
            field.SetInParent()
    if asked.gather_kernel_buffer_threshold is not None:
        config.optimization.gather_kernel_buffer_threshold = asked.gather_kernel_buffer_threshold


def _judge_waits(model: ModelSpec, batching: Batching, findings: Findings) -> None:
    """Delays and timeouts that the spec states, against each other and against what was promised."""
    delay_us, slo = batching.max_queue_delay_us, model.timed_slo
    if slo is not None and delay_us and (wait := judge_delay(delay_us, slo)):
        say = findings.warning if wait.is_late else findings.advice
        hint = "shorten it: under load batches are full without any delay"
        say("TG171", ("batching", "max_queue_delay"), wait.message, consequence=wait.consequence, hint=hint)
    for place, policy in _stated(model):
        timeout_us = policy.default_timeout_us
        if not timeout_us or (place != ("queue",) and model.queue.priority_levels is None):
            continue
        for wait in judge_timeout(timeout_us, delay_us=delay_us, slo=slo):
            is_over = slo is not None and timeout_us >= slo.tightest[1]
            hint = "shorten default_timeout to what the execution leaves of the slo" if is_over else "shorten max_queue_delay, or let requests wait longer"
            findings.warning("TG172", (*place, "default_timeout"), wait.message, consequence=wait.consequence, hint=hint)


def _remarks(model: ModelSpec, batching: Batching, overload: Overload | None) -> Iterator[str]:
    if batching.few_sizes:
        sizes = ", ".join(str(size) for size in batching.preferred)
        yield f"Preferred batch sizes {sizes} are derived: {batching.few_sizes}. `preferred: none` in the spec switches that off."
    if overload is not None:
        yield from _overload_remarks(model, overload)


def _overload_remarks(model: ModelSpec, overload: Overload) -> Iterator[str]:
    used = dict(_used(model.queue))
    levels = model.queue.priority_levels or 1
    others = "" if levels == 1 else "in each other level, " if len(used) > 1 else f"in each of {levels} levels, "
    for place, policy in used.items():
        level = place.rpartition(".")[2]
        which = f"at level {level}, " if level.isdecimal() else others
        yield f"Overload: {which}{overload.describe(policy, place)}; others are rejected."
    if any(group.kind == "gpu" and not group.gpus for group in placed_groups(model)):
        yield "Copies are counted for one GPU: list `gpus` where there are several."


def spec_keys() -> Iterator[tuple[Key, Key]]:
    """(path in the config, key of the spec) of everything that is written here."""
    scheduler, policy, optimization = ("dynamic_batching",), ("dynamic_batching", "default_queue_policy"), ("optimization",)
    yield (*scheduler, "preferred_batch_size"), ("batching", "preferred")
    yield (*scheduler, "max_queue_delay_microseconds"), ("batching", "max_queue_delay")
    for name in ("preserve_ordering", "priority_levels", "default_priority_level", "priority_queue_policy"):
        yield (*scheduler, name), ("queue", name)
    for name in ("max_queue_size", "timeout_action", "allow_timeout_override"):
        yield (*policy, name), ("queue", name)
    yield (*policy, "default_timeout_microseconds"), ("queue", "default_timeout")
    yield policy, ("queue", "overload")
    yield (*optimization, "eager_batching"), ("batching", "eager")
    yield (*optimization, "gather_kernel_buffer_threshold"), ("batching", "gather_kernel_buffer_threshold")
    for direction in ("input", "output"):
        yield (*optimization, f"{direction}_pinned_memory"), ("batching", "pinned_memory", direction)
