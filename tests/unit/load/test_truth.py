"""What a load test reports is what happened: held against a server that writes down when each request came and went."""

import pytest
import truth


def test_the_simulation_is_that_of_one_worker():
    # Three at once, each for 100 ms; one that comes in a pause; one that is cut by it and goes on afterwards.
    found = truth.simulated([0, 0, 0, 1.1, 1.95], 0.1, [(1.0, 0.5), (2.0, 0.25)])
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.35])


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_tail_is_what_the_servers_log_gives_and_a_pause_is_seen(protocol):
    found = truth.run(protocol, 200, 3, service_s=0.001, stalls=[(1.0, 0.3)])
    assert found.result.counts == {"ok": len(found.logged)}
    for percent in (50, 90, 99, 99.9):
        logged = found.logged_ms(percent)
        assert found.reported_ms(percent) == pytest.approx(logged, rel=0.1, abs=2), percent
    # Sixty of six hundred arrive in the pause, or while what it held back is worked off.
    assert found.reported_ms(99) > 200
    assert found.reported_ms(50) < 100
