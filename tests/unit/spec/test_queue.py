"""The keys about waiting: slo, queue, and what batching says besides sizes."""

import pytest

from tritongen.spec.units import duration_text, parse_duration

FINDINGS = [
    ("slo: {}", "TG009", "slo: it promises nothing"),
    ("slo: {p99: 0ms}", "TG011", "p99 is 0, and every request takes some time"),
    ("slo: {p50: 9ms, p99: 5ms}", "TG015", "p99 is 5ms, below p50: 9ms"),
    ("slo: {error_rate: 0.001}", "TG012", "slo.error_rate: 0.001 has no unit; a part of all requests is written like 0.1%"),
    ("slo: {error_rate: 1}", "TG012", "slo.error_rate: 1 has no unit; a part of all requests is written like 0.1%"),
    ("slo: {error_rate: 100%}", "TG012", "'100%' is not a percentage"),
    ("slo: {error_rate: [1%]}", "TG012", "expected a percentage"),
    ("slo: {p99: 20}", "TG012", "slo.p99: 20 has no unit; a duration is written like 2ms (units: us, ms, s, m, h)"),
    ("queue: {max_queue_size: 0}", "TG011", "queue.max_queue_size: must be at least 1, and it is 0"),
    ("queue: {preserve_ordering: 'yes'}", "TG010", "queue.preserve_ordering: expected true or false, got the text 'yes'"),
    ("queue: {timeout_action: REJECT}", "TG011", "queue.timeout_action: expected one of reject, delay; got the text 'REJECT'"),
    ("queue: {overload: drop}", "TG011", "queue.overload: expected one of none, reject; got the text 'drop'"),
    ("queue: {priority_levels: 2, default_priority_level: 3}", "TG015", "default_priority_level is 3, and priority_levels is 2"),
    ("queue: {priority_queue_policy: [1]}", "TG010", "queue.priority_queue_policy: expected a mapping of priority levels, got a list"),
    ("queue: {priority_queue_policy: {high: {}}}", "TG011", "queue.priority_queue_policy: 'high' is not a priority level"),
    ("queue: {priority_queue_policy: {0: {}}}", "TG011", "queue.priority_queue_policy: '0' is not a priority level"),
    ("queue: {priority_queue_policy: {'01': {}}}", "TG011", "queue.priority_queue_policy: '01' is not a priority level"),
    ("queue: {priority_levels: 2, priority_queue_policy: {3: {}}}", "TG015", "there is a policy for level 3, and priority_levels is 2"),
    ("queue: {priority_queue_policy: {1: {max_queue_size: x}}}", "TG010", "queue.priority_queue_policy.1.max_queue_size: expected a whole number"),
    ("queue: {priority_queue_policy: {1: {size: 1}}}", "TG008", "queue.priority_queue_policy.1: there is no key 'size'"),
    ("queue: {priority_levels: 2, preserve_ordering: true}", "TG015", "priority_levels: 2 lets some overtake others"),
    ("queue: {default_timeout: 1s, timeout_action: delay, preserve_ordering: true}", "TG015", "timeout_action: delay moves late ones back"),
    (
        "queue: {preserve_ordering: true, priority_queue_policy: {1: {default_timeout: 1s, timeout_action: delay}}}",
        "TG015",
        "the policy of level 1 moves those back that waited 1s",
    ),
    ("batching: {preferred: all}", "TG010", "batching.preferred: expected auto, none or a list of batch sizes, got the text 'all'"),
    ("batching: {eager: 1}", "TG010", "batching.eager: expected true or false, got the number 1"),
    ("batching: {pinned_memory: false}", "TG010", "batching.pinned_memory: expected a mapping"),
]


@pytest.mark.parametrize(("text", "code", "words"), FINDINGS)
def test_one_finding_for_one_mistake(folder, text, code, words):
    finding = folder.model_finding(text)
    assert finding.code == code
    assert words in finding.message
    assert finding.hint
    assert finding.location.line == 3


def test_a_mistake_in_one_level_is_shown_there(folder):
    finding = folder.finding(
        "version: 1\nmodels:\n  - name: m\n    source: m.onnx\n    queue:\n      priority_queue_policy:\n        1: {}\n        2: {max_queue_size: x}\n"
    )
    assert (finding.location.line, finding.location.column) == (8, 29)


def test_both_orders_that_contradict_are_said_at_once(folder):
    found = folder.findings(
        "version: 1\nmodels:\n  - {name: m, source: m.onnx, queue: {priority_levels: 2, default_timeout: 1s, timeout_action: delay, preserve_ordering: true}}\n"
    )
    assert [finding.code for finding in found] == ["TG015", "TG015"]


def test_order_goes_with_one_level_and_with_a_delay_that_never_comes(folder):
    assert folder.model("queue: {priority_levels: 1, timeout_action: delay, preserve_ordering: true}").queue.preserve_ordering


def test_levels_are_numbers(folder):
    policies = folder.model(
        "queue: {priority_levels: 9, priority_queue_policy: {2: {max_queue_size: 4}, '9': {default_timeout: 5ms}}}"
    ).queue.priority_queue_policy
    assert (list(policies), policies[2].max_queue_size, policies[9].default_timeout_us) == ([2, 9], 4, 5000)


def test_the_tightest_time_is_that_of_the_lowest_percentile(folder):
    assert folder.model("slo: {p90: 10ms, p99: 30ms}").slo.tightest == ("p90", 10_000)


def test_a_rate_of_errors_alone_promises_no_time(folder):
    model = folder.model("slo: {error_rate: 0.1 %}")
    assert (model.slo.error_rate, model.slo.times_us, model.timed_slo) == (0.001, {}, None)
    assert [folder.model(f"slo: {{error_rate: {text}}}").slo.error_rate for text in ("0", "0%", "0.0 %")] == [0, 0, 0]


@pytest.mark.parametrize(("text", "sizes"), [("auto", None), ("none", ()), ("[]", ()), ("[2, 4]", (2, 4))])
def test_preferred_sizes(folder, text, sizes):
    assert folder.model(f"batching: {{max: 4, preferred: {text}}}").batching.preferred == sizes


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("priority_levels", "write queue: {priority_levels: 2}"),
        ("default_queue_policy", "write queue: {max_queue_size: 64, default_timeout: 10ms}"),
        ("eager_batching", "write batching: {eager: true}"),
        ("rate_limiter", "write instances: [{rate_limiter: {resources: [{name: gpu_memory, count: 1}]}}]"),
    ],
)
def test_the_names_of_triton_lead_to_the_keys(folder, key, hint):
    finding = folder.model_finding(f"{key}: 1")
    assert (finding.code, finding.hint) == ("TG008", hint)


@pytest.mark.parametrize("text", ["0us", "1us", "999us", "1ms", "2.5ms", "1.001ms", "1s", "90s", "90.5s", "2m", "1h", "10h", "90m", "1.000001s"])
def test_a_duration_is_written_as_it_is_read(text):
    assert duration_text(parse_duration(text)) == text
