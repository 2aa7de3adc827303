"""Waits of Locust's users, by a clock that stands still but for what passes here."""

import itertools
import random
import statistics

import pytest

from tritongen.load import random_throughput


class User:
    """One that asks, waits for the answer, and then as long as it is told."""

    def __init__(self, wait_time, clock):
        self.wait_time, self.clock = wait_time, clock

    def begins(self, count, answered_after_s):
        for _ in range(count):
            yield self.clock[0]
            self.clock[0] += answered_after_s
            self.clock[0] += self.wait_time(self)


@pytest.mark.parametrize("answered_after_s", [0.0, 0.1])
def test_tasks_come_by_chance_and_as_many_as_were_asked_for(answered_after_s):
    random.seed(3)
    clock = [1000.0]
    begins = list(User(random_throughput(5.0, clock=lambda: clock[0]), clock).begins(4000, answered_after_s))
    gaps = [later - earlier for earlier, later in itertools.pairwise(begins)]
    assert statistics.mean(gaps) == pytest.approx(0.2, rel=0.05)
    assert min(gaps) >= answered_after_s - 1e-6
    # Of exponential gaps both are equal; constant ones do not vary at all.
    assert statistics.stdev(gaps) > 0.7 * statistics.mean(gaps)


def test_each_user_has_gaps_of_its_own():
    random.seed(4)
    wait_time = random_throughput(5.0, clock=lambda: 0.0)
    one, other = object.__new__(User), object.__new__(User)
    assert len({wait_time(one), wait_time(other), wait_time(one), wait_time(other)}) == 4
