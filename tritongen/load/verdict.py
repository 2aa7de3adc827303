"""How a run is judged: promises against every request that was due, how long the server answered, and whether the sender was the bottleneck. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tritongen.load.histogram import Histogram, Samples
from tritongen.load.recorder import Recorder, Second
from tritongen.spec.traffic import Promises

FEWEST_BEYOND = 10
"""A percentile with fewer samples beyond it moves from run to run by itself: the relative error of a count of n events is about 1/sqrt(n)."""
_NONE_SEEN = 3.0
"""Where none of n requests failed, the error rate is below 3/n with 95 % confidence: the rule of three, since (1 - 3/n)^n is about exp(-3)."""
LATE_US = 5000
"""A request that is sent so late, or a sender that wakes up so late, says more about this machine than about the server."""
_LATE_PART = 0.01
_FEWEST_LATE = 5
"""Where one request in a hundred is late, which is borne, so many of a hundred are late by chance in 1 of 300 runs. Fewer may be a single hiccup."""
_UNTOLD_PART = 0.01
"""The first answers may come before the system has begun to write down when."""
_SILENCE_S = 1.0
_BY_CHANCE = 1e-6


def judged(latencies: Histogram, unanswered: int, measure: str, deadline_s: float) -> float:
    """A measure such as `p99`, `mean` or `max`, in milliseconds, of all requests that were due; 0 where there were none.

    Requests without a good answer are slower than all others: a percentile that falls on one is infinite, and so is `max` where there is any. In `mean`, which
    one of them would make infinite, each counts as `deadline_s`, after which it was or would have been given up.
    """
    samples = Samples.of(latencies)
    if measure == "mean":
        total = samples.count + unanswered
        return (samples.mean * samples.count / 1000 + unanswered * deadline_s * 1000) / total if total else 0.0
    return samples.percentile(100.0 if measure == "max" else float(measure[1:]), slower=unanswered) / 1000


def samples_beyond(count: int, percentile: str) -> float:
    """How many of `count` samples lie beyond a percentile such as `p99.9`."""
    return count * (100 - float(percentile[1:])) / 100


def is_thin(count: int, percentile: str) -> bool:
    """Whether so few samples lie beyond a percentile that it differs from run to run by itself."""
    return samples_beyond(count, percentile) < FEWEST_BEYOND - 1e-6


def broken(promises: Promises, latencies: Histogram, due: int, deadline_s: float, undecided: Histogram) -> Iterator[str]:
    """The promises of latencies that were not kept, in sentences with both numbers.

    Args:
        promises: what was promised.
        latencies: of the requests that were answered well, in microseconds.
        due: how many requests were due.
        deadline_s: when a request was given up.
        undecided: how long requests had waited that were under way when the run was broken off. Within a limit, they say nothing about it.
    """
    waiting = Samples.of(undecided)
    for name, limit in promises.percentiles.items():
        asked = due - waiting.count + waiting.beyond(int(limit * 1000))
        unanswered = asked - latencies.count
        without = f"{unanswered} of {asked} requests got no good answer"
        value = judged(latencies, unanswered, name, deadline_s)
        if not asked:
            yield f"{name}: no request was due" + ", or was given time to be answered" * bool(due)
        elif value == math.inf:
            yield f"{name}: {without}, and {limit:g} ms were promised"
        elif value > limit:
            yield f"{name} is {value:.2f} ms, and {limit:g} ms were promised{f' ({without})' if unanswered else ''}"


def unshown(promises: Promises, due: int, error_rate: float) -> Iterator[str]:
    """The promises that so few requests cannot show to be kept, in sentences with how many can.

    Args:
        promises: what was promised.
        due: how many requests were due.
        error_rate: the part of them that were not answered well. What is broken by so many is no question of a few more requests.
    """
    if not due:
        return
    for name in promises.percentiles:
        if name.startswith("p") and is_thin(due, name) and error_rate * due <= samples_beyond(due, name):
            enough = math.ceil(round(FEWEST_BEYOND * due / samples_beyond(due, name), 3))
            few = f"of {due} requests fewer than {FEWEST_BEYOND} lie beyond it"
            yield f"{name} is promised, and {few}, so that it differs from run to run by itself: send {enough:,}"
    limit = promises.error_rate
    if limit is not None and error_rate <= limit < _NONE_SEEN / due:
        shown = f"an error rate of {limit:.3%} is promised, and even no error in {due} requests shows only a rate below {min(_NONE_SEEN / due, 1.0) * 100:.2g}%"
        yield f"{shown}: send {math.ceil(_NONE_SEEN / limit):,}" if limit else f"{shown}: the more are sent, the less"


def stopped(recorder: Recorder, begin_s: float, end_s: float) -> str:
    """When the server stopped answering, in a sentence; empty where it did not.

    It did where nothing that was due in the last second or longer was answered well, and so many requests in a row do not fail by chance, as often as they
    failed before.

    Args:
        recorder: the run.
        begin_s: where the measured time begins, in seconds from the run's beginning.
        end_s: where it ends.
    """
    last = recorder.last_ok_s
    if last < 0 or end_s - last < _SILENCE_S:
        return ""
    before, after = Second(), Second()
    for number, second in recorder.seconds.items():
        (after if number > last else before).merge(second)
    failing = (before.due - before.ok + 1) / (before.due + 2)  # Laplace's rule: also where none failed, the next may
    if not after.due or after.ok or failing**after.due > _BY_CHANCE:
        return ""
    return f"no good answer came after {last - begin_s:.1f} s of the {end_s - begin_s:g} s measured: the server went away, or stands still since"


def unanswered(counts: Mapping[str, int], missed: int) -> str:
    """That nothing was answered well, in a sentence, with what came instead; empty where something was."""
    if counts.get("ok"):
        return ""
    others = [f"{count} {outcome}" for outcome, count in sorted(counts.items()) if count] + ([f"{missed} never sent"] if missed else [])
    return f"no request was answered well in the measured time ({', '.join(others)})" if others else "no request was due in the measured time"


def lateness(late: Histogram) -> str:
    """That requests were sent late, in a sentence; empty where they were not, or so few that one hiccup of this machine explains it."""
    if not (count := _too_late(late)):
        return ""
    words = f"{count} of {late.count} requests were sent more than {LATE_US / 1000:g} ms late, up to {_largest_ms(late):.1f} ms"
    return f"{words}: this machine is too busy; add --processes, or send from another one"


def slowness(lag: Histogram) -> str:
    """That senders woke up late, by which they send late in a closed loop, too; empty where they did not, or hardly ever."""
    if not (count := _too_late(lag)):
        return ""
    words = f"senders woke up more than {LATE_US / 1000:g} ms late {count} of {lag.count} times, up to {_largest_ms(lag):.1f} ms"
    return f"{words}, and sent so much later: this machine is too busy; add --processes, or send from another one"


def unstamped(recorder: Recorder, counts: Mapping[str, int]) -> str:
    """That the system did not tell when answers arrived, in a sentence; empty where it did."""
    answered = counts.get("ok", 0)
    untold = answered - recorder.unread.count
    if untold <= _UNTOLD_PART * answered:
        return ""
    return f"the sending machine does not tell when {untold} of {answered} answers arrived (SO_TIMESTAMPNS): their latencies count until they were read"


def _too_late(late: Histogram) -> int:
    """How many are above what is borne; 0 where they are few."""
    count = Samples.of(late).beyond(LATE_US)
    return count if count >= max(_FEWEST_LATE, _LATE_PART * late.count) else 0


def _largest_ms(late: Histogram) -> float:
    return Samples.of(late).percentile(100.0) / 1000
