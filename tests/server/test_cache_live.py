"""The response cache of the embedded Triton, from a key of the spec to hits in the metrics."""

from __future__ import annotations

import re
import urllib.request

import contract
import networks
import numpy as np
import pytest

from tritongen.errors import InputError
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

SPEC = """\
version: 1
models:
  - {name: kept, source: m.onnx, response_cache: true}
  - {name: plain, source: m.onnx}
"""


def metric(server, family: str, model: str) -> float | None:
    with urllib.request.urlopen(f"{server.metrics_url}/metrics") as answer:
        found = re.search(rf'^{family}{{model="{model}",version="1"}} ([0-9.]+)$', answer.read().decode(), re.MULTILINE)
    return float(found[1]) if found else None


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spec")
    networks.mlp(folder / "m.onnx")
    (folder / "spec.yaml").write_text(SPEC)
    return folder / "spec.yaml"


def test_equal_requests_are_answered_from_the_cache_and_alike(spec, options, ask):
    x, other = (np.random.default_rng(seed).standard_normal((2, 8)).astype(np.float32) for seed in range(2))
    with serving(spec, options()) as served:
        first, again, different = (ask(served.server, "kept", {"x": array})["y"] for array in (x, x, other))
        contract.eventually(lambda: metric(served.server, "nv_cache_num_hits_per_model", "kept") == 1, "one hit is counted")
        contract.eventually(lambda: metric(served.server, "nv_cache_num_misses_per_model", "kept") == 2, "two misses are counted")
        np.testing.assert_array_equal(first, again)
        assert not np.allclose(first, different)
        for _ in range(2):
            np.testing.assert_array_equal(ask(served.server, "plain", {"x": x})["y"], first)
        assert not metric(served.server, "nv_cache_num_hits_per_model", "plain")
        assert [finding for finding in served.findings if finding.code == "TG409"] == []


def test_a_cache_may_be_as_small_as_the_smallest_that_is_allowed(spec, options, ask):
    with serving(spec, options(cache_config="local,size=1024")) as served:
        assert ask(served.server, "kept", {"x": np.zeros((1, 8), np.float32)})["y"].shape == (1, 4)


@pytest.mark.parametrize("text", ["redis,host=127.0.0.1,port=6379", "local", "local,size=64MiB", "local,size=10", "local,size=99999999999999"])
def test_a_cache_that_cannot_be_is_refused_before_anything_starts(options, text):
    with pytest.raises(InputError) as caught:
        options(cache_config=text)
    assert "local,size=67108864" in caught.value.diagnostics[0].hint
