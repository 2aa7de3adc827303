"""`batching`, `queue` and `slo` of a model → `dynamic_batching`, and what is said about them."""

import pytest

from tests.unit.render.compiling import compiled, signature
from tritongen.diagnostics import Severity
from tritongen.modelconfig import parse_pbtxt
from tritongen.spec.units import duration_text

CONVOLUTIONAL = signature(("N", 3, 8, 8), convolves=True)
SECOND_LEVEL = "priority_queue_policy { key: 2 value { default_timeout_microseconds: 1000000 } }"


def scheduler(text):
    """What a config says, as text → the message `dynamic_batching`."""
    return parse_pbtxt(f"dynamic_batching {{ {text} }}").dynamic_batching


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("batching: {max: 8}", ""),
        ("batching: {max: 8, preferred: none}", ""),
        ("batching: {max: 8, preferred: [2, 8], max_queue_delay: 1ms}", "preferred_batch_size: [2, 8] max_queue_delay_microseconds: 1000"),
        ("queue: {max_queue_size: 16}", "default_queue_policy { max_queue_size: 16 }"),
        ("queue: {default_timeout: 5ms}", "default_queue_policy { default_timeout_microseconds: 5000 }"),
        (
            "queue: {default_timeout: 5ms, timeout_action: delay, allow_timeout_override: true}",
            "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000 allow_timeout_override: true }",
        ),
        ("queue: {preserve_ordering: true}", "preserve_ordering: true"),
        ("queue: {priority_levels: 3}", "priority_levels: 3 default_priority_level: 3"),
        (
            "queue: {priority_levels: 2, default_priority_level: 1, max_queue_size: 9, priority_queue_policy: {2: {default_timeout: 1s}}}",
            f"priority_levels: 2 default_priority_level: 1 default_queue_policy {{ max_queue_size: 9 }} {SECOND_LEVEL}",
        ),
    ],
)
def test_keys_become_fields(keys, text):
    outcome = compiled(keys)
    assert outcome.config.dynamic_batching == scheduler(text)
    assert outcome.config.HasField("dynamic_batching")
    assert outcome.codes == []


def test_a_queue_needs_no_batches():
    outcome = compiled("batching: none\nshapes: {x: [1, 8]}\nqueue: {max_queue_size: 4}")
    assert outcome.config.max_batch_size == 0
    assert outcome.config.dynamic_batching == scheduler("default_queue_policy { max_queue_size: 4 }")
    assert outcome.codes == []


@pytest.mark.parametrize("keys", ["batching: {max: 1}", "batching: none\nshapes: {x: [1, 8]}"])
def test_without_batches_and_queue_there_is_no_batcher(keys):
    outcome = compiled(keys)
    assert not outcome.config.HasField("dynamic_batching")
    assert outcome.codes == []


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        ("batching: {max: 1, max_queue_delay: 1ms}", "batching.max_queue_delay", "no batches are formed with max: 1"),
        ("batching: {max: 0, max_queue_delay: 1ms}\nshapes: {x: [1, 8]}", "batching.max_queue_delay", "no batches are formed with max: 0"),
        ("batching: {max: 1, preferred: [1]}", "batching.preferred", "no batches are formed with max: 1"),
        ("batching: {max: 1, eager: true}", "batching.eager", "no batches are formed with max: 1"),
        ("batching: {pinned_memory: {input: false}}\ninstances: {kind: cpu}", "batching.pinned_memory", "no instance runs on a GPU"),
        ("batching: {gather_kernel_buffer_threshold: 4}\ninstances: {kind: cpu}", "batching.gather_kernel_buffer_threshold", "no instance runs on a GPU"),
        ("queue: {default_priority_level: 1}", "queue.default_priority_level", "without priority_levels"),
        ("queue: {priority_levels: 1}", "queue.priority_levels", "no request overtakes another"),
        ("queue: {default_timeout: 0ms}", "queue.default_timeout", "it means for ever"),
        (
            "queue: {priority_levels: 2, priority_queue_policy: {1: {default_timeout: 0ms, max_queue_size: 3}}}",
            "queue.priority_queue_policy.1.default_timeout",
            "it means for ever",
        ),
        ("queue: {priority_queue_policy: {1: {max_queue_size: 4}}}", "queue.priority_queue_policy", "without priority_levels"),
        ("queue: {allow_timeout_override: true}", "queue.allow_timeout_override", "a request can only shorten the time, and there is none"),
        ("queue: {timeout_action: delay, max_queue_size: 3}", "queue.timeout_action", "no request's time is ever over"),
        (
            "queue: {priority_levels: 2, priority_queue_policy: {1: {timeout_action: reject}}}",
            "queue.priority_queue_policy.1.timeout_action",
            "without default_timeout",
        ),
    ],
)
def test_a_key_without_effect_is_said_and_not_written(keys, place, words):
    outcome = compiled(keys)
    finding = outcome.only("TG117")
    assert (finding.location.path, finding.severity) == (place, Severity.WARNING)
    assert words in finding.message
    assert finding.hint
    assert not outcome.config.HasField("optimization")


def test_what_a_queue_says_without_effect_is_not_written():
    outcome = compiled("queue: {default_priority_level: 1, priority_queue_policy: {1: {max_queue_size: 4}}, allow_timeout_override: true}")
    assert outcome.config.dynamic_batching == scheduler("")
    assert outcome.codes == ["TG117"] * 3


def test_the_same_for_all_models_is_only_advice():
    outcome = compiled("queue: {allow_timeout_override: true}", inherited=("queue",))
    assert outcome.only("TG117").severity is Severity.ADVICE


def test_how_a_batch_is_gathered():
    keys = "batching: {max: 8, eager: true, pinned_memory: {input: false, output: false}, gather_kernel_buffer_threshold: 8}\ninstances: {kind: gpu}"
    outcome = compiled(keys)
    text = "optimization { eager_batching: true gather_kernel_buffer_threshold: 8 input_pinned_memory { } output_pinned_memory { } }"
    assert outcome.config.optimization == parse_pbtxt(text).optimization
    assert outcome.codes == []


def test_pinned_memory_is_left_to_triton_where_nothing_is_said():
    assert not compiled("batching: {pinned_memory: {input: true}}").config.HasField("optimization")


@pytest.mark.parametrize(
    ("keys", "sizes"),
    [
        ("accelerator: cuda", [2, 4, 8]),
        ("accelerator: cuda\nbatching: {max: 12}", [2, 4, 8, 12]),
        ("accelerator: cuda\nbatching: {max: 2}", [2]),
        ("accelerator: cuda\nbatching: {max: 1}", []),
        ("accelerator: cuda\nbatching: {preferred: none}", []),
        ("accelerator: cuda\nbatching: {preferred: [8]}", [8]),
        ("accelerator: none", []),
        ("instances: {kind: cpu}", []),
        ("instances: {kind: gpu}", [2, 4, 8]),
        ("instances: [{kind: gpu}, {kind: cpu}]", []),
        ("config: {instance_group: [{kind: KIND_GPU}]}", [2, 4, 8]),
        ("accelerator: cuda\nonnxruntime: {cuda: {cudnn_conv_algo_search: exhaustive}}", [2, 4, 8]),
        ("accelerator: cuda\nonnxruntime: {cuda: {cudnn_conv_algo_search: heuristic}}", []),
        ("instances: {kind: gpu}\nonnxruntime: {cuda: {cudnn_conv_algo_search: default}}", []),
        ("accelerator: tensorrt", []),
        ("backend: tensorrt", []),
        ("backend: tensorrt\ninstances: {kind: gpu, profiles: [0, 1]}", []),
        ("backend: tensorrt\ntensorrt: {cuda_graphs: true}", [2, 4, 8]),
    ],
)
def test_preferred_sizes_are_derived_where_few_are_fast(keys, sizes):
    outcome = compiled(keys, CONVOLUTIONAL)
    assert list(outcome.config.dynamic_batching.preferred_batch_size) == sizes
    derived = bool(sizes) and "preferred" not in keys
    assert any("are derived" in remark for remark in outcome.remarks) is derived
    assert [sample.batch_size for sample in outcome.config.model_warmup] == sorted({1, outcome.config.max_batch_size, *sizes})


def test_a_network_without_convolutions_takes_any_size():
    assert not compiled("accelerator: cuda").config.dynamic_batching.preferred_batch_size


def test_overload_needs_to_know_what_was_promised():
    finding = compiled("queue: {overload: reject}").only("TG170")
    assert finding.severity is Severity.ERROR
    assert finding.location.path == "queue.overload"
    assert "slo: {p99: 20ms}" in finding.hint


@pytest.mark.parametrize(
    ("keys", "policy"),
    [
        ("batching: {max: 4}", "max_queue_size: 4 default_timeout_microseconds: 10000"),
        ("batching: {max: 4}\ninstances: {kind: gpu, count: 2, gpus: [0, 1]}", "max_queue_size: 16 default_timeout_microseconds: 10000"),
        ("batching: none\nshapes: {x: [1, 8]}\ninstances: {kind: gpu, count: 3}", "max_queue_size: 3 default_timeout_microseconds: 10000"),
    ],
)
def test_overload_derives_its_limits(keys, policy):
    outcome = compiled(f"{keys}\nslo: {{p95: 20ms, p99: 80ms}}\nqueue: {{overload: reject}}")
    assert outcome.config.dynamic_batching.default_queue_policy == scheduler(f"default_queue_policy {{ {policy} }}").default_queue_policy
    assert any("half of slo.p95: 20ms" in remark for remark in outcome.remarks)
    assert outcome.codes == []


def test_what_is_stated_wins_over_overload_in_every_level():
    outcome = compiled(
        "slo: {p99: 20ms}\nbatching: {max: 4}\nqueue:\n  overload: reject\n  max_queue_size: 99\n  allow_timeout_override: true\n"
        "  priority_levels: 3\n  priority_queue_policy: {1: {default_timeout: 4ms}, 2: {max_queue_size: 1}}"
    )
    limits = "default_timeout_microseconds"
    assert outcome.config.dynamic_batching == scheduler(
        f"priority_levels: 3 default_priority_level: 3 default_queue_policy {{ max_queue_size: 99 {limits}: 10000 allow_timeout_override: true }}"
        f" priority_queue_policy {{ key: 1 value {{ max_queue_size: 4 {limits}: 4000 }} }}"
        f" priority_queue_policy {{ key: 2 value {{ max_queue_size: 1 {limits}: 10000 }} }}"
    )
    assert outcome.codes == []
    assert [remark.removesuffix("; others are rejected.") for remark in outcome.remarks if remark.startswith("Overload")] == [
        "Overload: in each other level, at most 99 requests wait (queue.max_queue_size), for at most 10ms (half of slo.p99: 20ms)",
        "Overload: at level 1, at most 4 requests wait (one batch of 4 for the copy), for at most 4ms (priority_queue_policy.1.default_timeout)",
        "Overload: at level 2, at most 1 request waits (priority_queue_policy.2.max_queue_size), for at most 10ms (half of slo.p99: 20ms)",
    ]


LEVELS = "slo: {p50: 10ms}\nqueue: {overload: reject, default_timeout: 8ms, priority_levels: 2, priority_queue_policy: {1: {max_queue_size: 2}}}\n"
OVERLOAD = "slo: {p99: 20ms}\nqueue: {overload: reject%s}\n"


@pytest.mark.parametrize(
    ("keys", "remark"),
    [
        (OVERLOAD % "", "at most 8 requests wait (one batch of 8 for the copy), for at most 10ms (half of slo.p99: 20ms)"),
        (OVERLOAD % ", max_queue_size: 3, default_timeout: 15ms", "at most 3 requests wait (queue.max_queue_size), for at most 15ms (queue.default_timeout)"),
        (OVERLOAD % "" + "batching: {max: 8, preferred: [4]}", "at most 4 requests wait (one batch of 4 for the copy)"),
        (OVERLOAD % "" + "batching: {max_queue_delay: 6ms}", "for at most 12ms (twice batching.max_queue_delay: 6ms)"),
        (
            OVERLOAD % "" + "config: {instance_group: [{kind: KIND_CPU, count: 3}]}\ncpu_threads: 1",
            "at most 24 requests wait (one batch of 8 for each of 3 copies)",
        ),
        ("slo: {p50: 3us}\nqueue: {overload: reject}", "for at most 1us (half of slo.p50: 3us, rounded down)"),
        ("slo: {p50: 10h}\nqueue: {overload: reject}", "for at most 5h (half of slo.p50: 10h)"),
        (OVERLOAD % ", priority_levels: 2", "in each of 2 levels, at most 8 requests wait"),
    ],
)
def test_the_header_says_what_the_config_says(keys, remark):
    outcome = compiled(keys)
    (said,) = [said for said in outcome.remarks if said.startswith("Overload")]
    assert remark in said
    policy = outcome.config.dynamic_batching.default_queue_policy
    assert f"at most {policy.max_queue_size} request" in said
    assert f"for at most {duration_text(policy.default_timeout_microseconds)} (" in said


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            "slo: {p50: 10ms}\nqueue: {overload: reject}\nbatching: {max_queue_delay: 5ms}",
            "below slo.p50: 10ms (slo.p50), and max_queue_delay: 5ms (batching.max_queue_delay) is half of that or more",
        ),
        ("slo: {p50: 1us}\nqueue: {overload: reject}", "below slo.p50: 1us (slo.p50), and Triton counts whole microseconds"),
        (
            f"{LEVELS}batching: {{max_queue_delay: 6ms}}",
            "max_queue_delay: 6ms (batching.max_queue_delay) is half of that or more",
        ),
    ],
)
def test_overload_that_leaves_no_time_to_wait_is_refused_with_both_places(keys, words):
    found = compiled(keys).only("TG015")
    assert found.severity is Severity.ERROR
    assert str(found.location) == "queue.overload"
    assert words in found.message


def test_a_stated_time_needs_none_that_is_derived():
    keys = "slo: {p50: 10ms}\nqueue: {overload: reject, default_timeout: 8ms}\nbatching: {max_queue_delay: 6ms}"
    assert "TG015" not in compiled(keys).codes


def test_copies_on_gpus_that_are_not_listed_are_counted_once():
    outcome = compiled("slo: {p99: 20ms}\nqueue: {overload: reject}\ninstances: {kind: gpu, count: 2}")
    assert outcome.config.dynamic_batching.default_queue_policy.max_queue_size == 16
    assert any("for one GPU" in remark for remark in outcome.remarks)


@pytest.mark.parametrize(
    ("keys", "severity", "place", "words"),
    [
        ("slo: {p99: 10ms}\nbatching: {max_queue_delay: 10ms}", Severity.WARNING, "batching.max_queue_delay", "is 10ms, which is not below slo.p99: 10ms"),
        ("slo: {p50: 4ms, p99: 90ms}\nbatching: {max_queue_delay: 3ms}", Severity.ADVICE, "batching.max_queue_delay", "is 3ms, 75 % of slo.p50: 4ms"),
    ],
)
def test_a_delay_is_compared_with_what_was_promised(keys, severity, place, words):
    finding = compiled(keys).only("TG171")
    assert (finding.severity, finding.location.path) == (severity, place)
    assert words in finding.message
    assert finding.consequence


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        ("slo: {p99: 20ms}\nqueue: {default_timeout: 20ms}", "queue.default_timeout", "wait 20ms, which is not below slo.p99: 20ms"),
        ("batching: {max_queue_delay: 5ms}\nqueue: {default_timeout: 5ms}", "queue.default_timeout", "wait 5ms, which is not above max_queue_delay: 5ms"),
        (
            "slo: {p99: 20ms}\nqueue: {priority_levels: 1, priority_queue_policy: {1: {default_timeout: 1s}}}",
            "queue.priority_queue_policy.1.default_timeout",
            "wait 1s, which is not below slo.p99: 20ms",
        ),
    ],
)
def test_a_timeout_lies_between_the_delay_and_what_was_promised(keys, place, words):
    finding = compiled(keys).only("TG172")
    assert (finding.severity, finding.location.path) == (Severity.WARNING, place)
    assert words in finding.message
    assert finding.hint


@pytest.mark.parametrize("keys", ["slo: {p99: 10ms}\nbatching: {max_queue_delay: 5ms}", "slo: {p99: 20ms}\nqueue: {default_timeout: 10ms}", "slo: {p99: 1us}"])
def test_what_fits_is_not_mentioned(keys):
    assert compiled(keys).codes == []


@pytest.mark.parametrize(
    ("keys", "overlay", "key"),
    [
        ("queue: {max_queue_size: 4}", "dynamic_batching: {default_queue_policy: {max_queue_size: 5}}", "queue.max_queue_size"),
        ("queue: {priority_levels: 2}", "dynamic_batching: {priority_levels: 3}", "queue.priority_levels"),
        ("batching: {max_queue_delay: 1ms}", "dynamic_batching: {max_queue_delay_microseconds: 5}", "batching.max_queue_delay"),
        ("batching: {eager: true}", "optimization: {eager_batching: false}", "batching.eager"),
        ("cpu_threads: 2", "parameters: {intra_op_thread_count: {string_value: '3'}}", "cpu_threads"),
    ],
)
def test_a_field_is_set_once(keys, overlay, key):
    both = compiled(f"{keys}\nconfig: {{{overlay}}}")
    finding = both.only("TG180")
    assert key in finding.message
    assert finding.location.path.startswith("config.")
    assert compiled(f"config: {{{overlay}}}").codes == []
    assert "TG180" not in compiled(f"{keys}\nconfig: {{{overlay}}}", inherited=(key.split(".")[0],)).codes


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("queue: {max_queue_size: 4}", "queue"),
        ("batching: {preferred: [4]}", "batching.preferred"),
        ("batching: {max_queue_delay: 1ms}", "batching.max_queue_delay"),
    ],
)
def test_another_scheduler_takes_the_place_of_the_queue(keys, place):
    other = "config: {sequence_batching: {direct: {}}}"
    finding = compiled(f"{keys}\n{other}").only("TG131")
    assert finding.severity is Severity.ERROR
    assert finding.location.path == "config.sequence_batching"
    assert f"at {place}" in finding.message
    inherited = compiled(f"{keys}\n{other}", inherited=("queue", "batching"))
    assert inherited.only("TG117").severity is Severity.ADVICE
    assert inherited.config.HasField("sequence_batching")
