"""Models with a fixed batch, rebatched by their spec and served on a real Triton: a batch answers as its rows alone did before."""

from __future__ import annotations

import networks
import numpy as np
import onnxruntime
import pytest

from tests.server import models
from tests.unit.workflow.rewriting import flattening
from tritongen.client import Client
from tritongen.errors import InputError
from tritongen.repository import apply_plan
from tritongen.server import start
from tritongen.workflow.rendering import plan_render

pytestmark = pytest.mark.server


def rendered(folder, sources, keys):
    """The repository of a spec with a model for each of `sources`; a model has the name of its file."""
    lines = "\n".join(f"  - {{name: {path.stem}, source: {path.name}, {keys}}}" for path in sources)
    (folder / "spec.yaml").write_text(f"version: 1\nmodels:\n{lines}\n")
    with plan_render(folder / "spec.yaml") as rendering:
        apply_plan(rendering.plan)
        return rendering


def rows_alone(path, feed):
    """The answers of the original to each row alone, put together."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    count = len(next(iter(feed.values())))
    answers = [session.run(None, {name: array[row : row + 1] for name, array in feed.items()}) for row in range(count)]
    return {value.name: np.concatenate([answer[index] for answer in answers]) for index, value in enumerate(session.get_outputs())}


def assert_same(got, want):
    assert got.keys() == want.keys()
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-3, atol=1e-5 * float(np.abs(array).max()))


def test_a_batch_of_three_equals_three_single_runs(tmp_path, options):
    path = flattening(tmp_path / "m.onnx")
    rendering = rendered(tmp_path, [path], "rebatch: true, optimize: offline, batching: {max: 4}")
    feed = {"x": models.weights(3, 3, 4, seed=2)}
    with start(rendering.plan.root, options()) as server, Client(server.grpc_url) as client:
        assert_same(client.infer("m", feed), rows_alone(path, feed))


def test_frozen_sizes_are_the_only_ones_that_are_served(tmp_path, options):
    model = networks.packaged(networks.RECOGNIZER)
    (tmp_path / "rec.onnx").write_bytes(model.read_bytes())
    rendering = rendered(tmp_path, [tmp_path / "rec.onnx"], "freeze: true, shapes: {x: [3, 48, 160]}, batching: {max: 2}")
    feed = {"x": models.weights(2, 3, 48, 160, seed=4)}
    with start(rendering.plan.root, options()) as server, Client(server.grpc_url) as client:
        assert_same(client.infer("rec", feed), rows_alone(model, feed))
        with pytest.raises(InputError):
            client.infer("rec", {"x": models.weights(2, 3, 48, 320, seed=4)})


def check_light(names, folder, options):
    """Each of the networks is proved at 1, 2, 3 and 4 rows (a render refuses it else), and serves a batch of three."""
    paths = [networks.light(name, folder) for name in names]
    root = rendered(folder, paths, "rebatch: true, batching: {max: 4}").plan.root
    with start(root, options()) as server, Client(server.grpc_url) as client:
        for path in paths:
            ((name, shape),) = [(value.name, value.shape) for value in onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()]
            feed = {name: models.weights(3, *shape[1:], seed=1)}
            assert_same(client.infer(path.stem, feed), rows_alone(path, feed))


def test_small_light_networks_are_rebatched_and_served(tmp_path, options):
    check_light(("squeezenet", "shufflenet"), tmp_path, options)


@pytest.mark.system
@pytest.mark.timeout(1500)
def test_light_networks_are_rebatched_and_served(tmp_path, options):
    """All but vgg19, which is built as zfnet512 is, and takes minutes."""
    check_light([name for name in networks.LIGHT if name != "vgg19"], tmp_path, options)
