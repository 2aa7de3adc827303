"""The server's own counters: over which time they are taken."""

import pytest

from tritongen.load.arrivals import Stage
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.watch import ServerWatch


class Counting:
    """A client of a server that has answered so many requests."""

    answered = 0

    def statistics(self, model, version, *, deadline_s):
        return [{"inference_count": self.answered, "execution_count": self.answered, "inference_stats": {"success": {"count": self.answered}}}]


@pytest.mark.parametrize(("warmup", "counted", "begin_s"), [((), 10, -0.3), ((Stage(1, 10, 10, "warmup", measured=False),), 7, 1.0)], ids=["none", "a second"])
def test_without_a_warmup_they_are_taken_before_the_first_request_is_due(warmup, counted, begin_s):
    """Three requests are answered within the first second, and seven after it."""
    client = Counting()
    watch = ServerWatch(client, LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(*warmup, Stage(5, 10, 10, "10/s"))), "http://127.0.0.1:1/metrics")
    for elapsed_s, answered in ((-1.0, 0), (-0.3, 0), (1.0, 3)):
        client.answered = answered
        watch.look(elapsed_s)
    client.answered = 10
    watch.finish(6.0)
    found = watch.result()["m"]
    assert (found.requests, found.window.begin_s, found.window.end_s, found.window.whole) == (counted, begin_s, 6.0, True)
