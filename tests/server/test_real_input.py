"""Real ONNX files, from `tritongen init` to an answer of a real Triton that equals ONNX Runtime's.

The trained models of two PyPI wheels, onnxruntime's own data sets, and the ONNX wheel's networks with random weights; the large networks among these in
`make test-system`. Nothing here is told about a model but its file.
"""

from __future__ import annotations

from pathlib import Path

import networks
import numpy as np
import pytest

from tritongen.cli.main import run as run_command
from tritongen.client import Client
from tritongen.proof import open_session, run
from tritongen.server import ServerOptions
from tritongen.spec import load_spec
from tritongen.workflow.asking import make_inputs
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

TOLERANCE = 1e-5
BATCHES = (1, 3, 8)
LARGE = sorted(set(networks.LIGHT) - {*networks.SMALL_LIGHT, "vgg19", "zfnet512"})
"""Those two are built as bvlc_alexnet is, and take minutes."""
DATA_SETS = ("onnxruntime/datasets/mul_1.onnx", "onnxruntime/datasets/sigmoid.onnx")


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    assert got.shape == expected.shape
    assert np.isfinite(expected).all()
    return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))


def check_served(folder: Path, models: list[Path]) -> set[str]:
    """Serve what `init` writes for `models`, and compare every model, protocol and batch size with ONNX Runtime. Returns the models that batch."""
    spec = folder / "spec.yaml"
    assert run_command(["init", *map(str, models), "-o", str(spec)]) == 0
    assert "TODO" not in spec.read_text()
    loaded = load_spec(spec)
    batching = set()
    with serving(spec, ServerOptions(http_port=0, grpc_port=0, metrics_port=0)) as served:
        assert set(served.server.models.values()) == {"READY"}
        assert len(served.server.models) == len(models)
        for index, model in enumerate(loaded.spec.models):
            session = open_session(loaded.source_path(index))
            # A scalar travels as one element: Triton has no rank 0.
            scalars = {value.name for value in session.get_inputs() if not value.shape}
            with Client(served.server.grpc_url) as over_grpc, Client(served.server.http_url) as over_http:
                meta = over_grpc.meta(model.name)
                for batch in BATCHES if meta.max_batch_size else (1,):
                    inputs = make_inputs(meta, given={}, shapes={}, batch=batch, seed=batch)
                    expected = run(session, {name: array.reshape(()) if name in scalars else array for name, array in inputs.items()})
                    for client in (over_grpc, over_http):
                        outputs = client.infer(model.name, inputs)
                        assert set(outputs) == set(expected)
                        for name, array in expected.items():
                            assert relative(outputs[name], array) <= TOLERANCE, (model.name, name, batch)
                        if batch > 1:
                            batching.add(model.name)
                            first = next(iter(outputs.values()))
                            assert not np.array_equal(first[0], first[1]), f"{model.name} answers the same whatever the row"
    return batching


def test_trained_models_and_data_sets(tmp_path):
    batching = check_served(tmp_path, [networks.packaged(path) for path in (*networks.TRAINED, *DATA_SETS)])
    assert batching == {"ch_PP-OCRv4_rec_infer", "ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer"}


def test_small_networks_with_random_weights(tmp_path):
    check_served(tmp_path, [networks.light(name, tmp_path) for name in networks.SMALL_LIGHT])


@pytest.mark.system
@pytest.mark.parametrize("name", LARGE)
def test_large_networks_with_random_weights(tmp_path, name):
    path = networks.light(name, tmp_path)
    check_served(tmp_path, [path])


@pytest.mark.parametrize("name", networks.SMALL_LIGHT)
def test_the_test_networks_answer_differently_for_different_input(tmp_path, name):
    """A network that answers the same whatever it is asked would prove nothing above."""
    session = open_session(networks.light(name, tmp_path))
    rng = np.random.default_rng(0)
    (feed,) = session.get_inputs()
    one, other = (next(iter(run(session, {feed.name: rng.standard_normal(feed.shape).astype(np.float32)}).values())) for _ in range(2))
    assert relative(one, other) > 100 * TOLERANCE


def test_a_sequence_output_is_refused_and_said(tmp_path, capsys):
    code = run_command(["init", str(networks.packaged("onnxruntime/datasets/logreg_iris.onnx")), "-o", str(tmp_path / "spec.yaml")])
    error = capsys.readouterr().err
    assert code == 2
    assert "probabilities" in error
    assert "sequence" in error
    assert not (tmp_path / "spec.yaml").exists()
