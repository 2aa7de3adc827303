"""Damaged and hostile models: refused with a reason, never a traceback."""

import random
from collections.abc import Callable
from pathlib import Path

import networks
import onnx
import pytest
from rewrite_graphs import Graph, branches, ints, loop, node, zeros

from tritongen.errors import InputError, ModelFileError
from tritongen.rewrite import freeze, prove_batch, rebatch

GRAPHS = (
    Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["y"])], [1, 6], [ints("s", 1, 6)]),
    Graph([1, 4], [node("Slice", ["x", "a", "b", "axes"], ["y"])], [1, 4], [ints("a", 0), ints("b", 1), ints("axes", 0)]),
    branches(node("Flatten", ["x"], ["e"])),
    loop(zeros("start", 1, 4)),
)


def damaged(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 2, 8, 10, 127, 255, rng.randrange(256)))
    return bytes(changed)


def refusal(work: Callable[[], object]) -> InputError | None:
    """How `work` refuses its input; None where it does not. Anything but an answer or a refusal fails the test."""
    try:
        work()
    except InputError as error:
        return error
    return None


def attempt(folder: Path, rounds: int, seed: int) -> int:
    """Rewrites damaged models; how many of them were refused."""
    rng = random.Random(seed)
    contents = [graph.save(folder / f"{index}.onnx").read_bytes() for index, graph in enumerate(GRAPHS)]
    path, refusals = folder / "damaged.onnx", []
    for _ in range(rounds):
        path.write_bytes(damaged(rng.choice(contents), rng))
        for work in (lambda: rebatch(path, folder / "out.onnx"), lambda: freeze(path, {"x": [1, -1]}, folder / "out.onnx")):
            refusals += [refusal(work)]
    found = [error for error in refusals if error is not None]
    assert all(error.diagnostics for error in found)
    assert not [error for error in found if "TG155" in str(error)], "what we write is valid"
    return len(found)


def test_damaged_models_are_refused(tmp_path):
    assert attempt(tmp_path, 400, seed=1) > 200


@pytest.mark.fuzz
def test_many_damaged_models_are_refused(tmp_path):
    assert attempt(tmp_path, 20_000, seed=2) > 10_000


MALFORMED = {
    "reshape-without-target": [node("Reshape", ["x"], ["y"])],
    "if-without-branches": [node("If", ["x"], ["y"])],
    "loop-without-body": [node("Loop", ["", ""], ["y"])],
    "no-such-tensor": [node("Add", ["x", "nothing"], ["y"])],
    "no-inputs": [node("Concat", [], ["y"], axis=0)],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_nodes_are_refused_or_left_alone(name, tmp_path):
    path = Graph([1, 4], MALFORMED[name], [1, 4]).save(tmp_path / "m.onnx")
    for work in (lambda: rebatch(path, tmp_path / "o.onnx"), lambda: freeze(path, {"x": [1, 4]}, tmp_path / "o.onnx")):
        error = refusal(work)
        assert error is None or {diagnostic.location.path for diagnostic in error.diagnostics} == {str(path)}
    assert prove_batch(path, sizes=(1,)).failures[0].code == "TG160"


def test_a_tensor_whose_content_does_not_fit_its_shape_is_refused(tmp_path):
    path = GRAPHS[0].save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.initializer[0].dims[0] = 5
    onnx.save(model, path)
    with pytest.raises(ModelFileError, match="TG165 the graph cannot be followed"):
        rebatch(path, tmp_path / "o.onnx")


def test_a_reshape_to_a_matrix_is_refused(tmp_path):
    path = Graph([1, 4], [node("Reshape", ["x", "s"], ["y"], name="odd")], [1, 4], [zeros("s", 1, 0)]).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.initializer[0].data_type = onnx.TensorProto.INT64
    onnx.save(model, path)
    with pytest.raises(ModelFileError, match="TG165 the graph cannot be followed"):
        rebatch(path, tmp_path / "o.onnx")


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    for work in (rebatch, lambda path, target: freeze(path, {}, target), lambda path, _: prove_batch(path)):
        with pytest.raises(ModelFileError, match="TG024"):
            work(tmp_path / "m.onnx", tmp_path / "o.onnx")
        with pytest.raises(ModelFileError, match="TG020"):
            work(tmp_path / "none.onnx", tmp_path / "o.onnx")


def test_a_target_that_cannot_be_written_is_refused(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx", batch=1)
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match="TG164 the result cannot be written"):
        rebatch(path, tmp_path / "file/o.onnx")
