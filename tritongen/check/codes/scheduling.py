"""TG170 to TG176: waiting, copies and threads of a model, found by `tritongen render`."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

ENTRIES = (
    CodeEntry(
        "TG170",
        "overload-without-slo",
        None,
        "`overload: reject` needs an `slo`.",
        "Its limits are derived from what was promised: one full batch for each copy may wait, and nobody longer than half of the shortest time (or twice the"
        " queue delay).",
        "Add the slo, or state `max_queue_size` and `default_timeout` yourself.",
        "queue: {overload: reject}",
        "slo: {p99: 20ms}\nqueue: {overload: reject}",
    ),
    CodeEntry(
        "TG171",
        "delay-that-eats-the-slo",
        Consequence.SLOW,
        "A queue delay takes at most half of the slo's shortest time.",
        "A request that finds no company waits for the whole delay, and is executed after it. Triton compares the delay with nothing.",
        "Shorten `max_queue_delay`: under load, batches are full without any delay.",
        "slo: {p99: 10ms}\nbatching: {max_queue_delay: 10ms}",
        "slo: {p99: 10ms}\nbatching: {max_queue_delay: 1ms}",
    ),
    CodeEntry(
        "TG172",
        "timeout-that-does-not-fit",
        Consequence.MISBEHAVES,
        "The time that a request may wait is longer than the queue delay, and shorter than the slo.",
        "Triton looks at the timeout while a batch is gathered: one that is over before the delay rejects requests on an idle server (tried on 24.10). One that"
        " is not below the slo lets requests through that are answered too late.",
        "Write `max_queue_delay` < `default_timeout` < slo, with the time of an execution between the last two.",
        "slo: {p99: 20ms}\nqueue: {default_timeout: 30ms}",
        "slo: {p99: 20ms}\nqueue: {default_timeout: 10ms}",
    ),
    CodeEntry(
        "TG173",
        "copies-on-unknown-cores",
        Consequence.SLOW,
        "The number of cores is known where several copies of a model run on the CPU.",
        "By default each copy of an ONNX model starts as many threads as there are cores, with execution_mode: parallel twice as many, and they hinder each"
        " other. What is rendered does not depend on the"
        " machine that it is rendered on, so the cores of the server have to be told; without that, each copy gets one thread.",
        "Write `triton: {cpus: 8}` with the cores of the server's container, or `cpu_threads` for the model.",
        "instances: [{kind: cpu, count: 2}]",
        'triton: {release: "25.08", cpus: 8}\n# and for a model\ninstances: [{kind: cpu, count: 2}]',
    ),
    CodeEntry(
        "TG174",
        "key-that-needs-a-server-option",
        Consequence.IGNORED,
        "A rate limiter, a host policy, and plans with plugins or for later versions need an option of the server.",
        "Without --rate-limit=execution_count Triton never looks at resources and priorities; without --host-policy a policy's name means nothing. Neither is"
        " said when the model is loaded (core/src/rate_limiter.cc). The tensorrt backend loads plugins and plans for later versions by --backend-config only.",
        "Start the server with the option that the message names.",
    ),
    CodeEntry(
        "TG175",
        "more-threads-than-cores",
        Consequence.SLOW,
        "Copies on the CPU have no more threads together than there are cores.",
        "Threads beyond the number of cores wait for each other, in a container also for their share of time. With execution_mode: parallel a copy has"
        " `cpu_threads` + `inter_op_threads` - 1.",
        "Lower `cpu_threads` and `inter_op_threads`, or the count of instances.",
        "triton: {cpus: 4}\n# and for a model\ncpu_threads: 4\ninstances: [{kind: cpu, count: 2}]",
        "triton: {cpus: 4}\n# and for a model\ncpu_threads: 2\ninstances: [{kind: cpu, count: 2}]",
    ),
    CodeEntry(
        "TG176",
        "resource-of-two-kinds-in-a-spec",
        None,
        "A resource of the rate limiter is either global or per device, in all models of a spec.",
        "With --rate-limit=execution_count Triton refuses a model that contradicts itself, and of two models the one that is loaded second (tried on 24.10).",
        "Write `global` the same way everywhere, or take two names.",
        "instances: {kind: cpu, rate_limiter: {resources: [{name: R}, {name: R, global: true}]}}",
        "instances: {kind: cpu, rate_limiter: {resources: [{name: R}, {name: G, global: true}]}}",
    ),
)
