"""The requests of a load test: what is in them, in which order, and what is refused before the clock starts."""

import numpy as np
import pytest
from PIL import Image

from tritongen.client.metadata import model_meta
from tritongen.errors import InputError
from tritongen.load import payloads
from tritongen.load.payloads import check_plain_requests, make_pool
from tritongen.load.plan import LoadPlan, ModelLoad


def meta_of(*inputs, batch=8, **config):
    """What a server says of a model with inputs (name, datatype, shape of one item)."""
    axis = [-1] if batch else []
    tensors = [{"name": name, "datatype": dtype, "shape": [*axis, *item]} for name, dtype, item in inputs]
    outputs = [{"name": "y", "datatype": "FP32", "shape": [*axis, 1]}]
    return model_meta({"name": "m", "inputs": tensors, "outputs": outputs}, {"name": "m", "max_batch_size": batch, **config})


IMAGES = meta_of(("x", "FP32", [3, 4, 4]))
NUMBERS = meta_of(("x", "FP32", [1]))
TWO = meta_of(("ids", "INT64", [2]), ("mask", "INT64", [2]))


def pool_of(meta, *, pool=8, seed=0, **load):
    model = ModelLoad("m", **load)
    return make_pool(LoadPlan((model,), "grpc://h:1", pool=pool, seed=seed), model, meta).requests


def problems(meta, **load):
    with pytest.raises(InputError) as caught:
        pool_of(meta, **load)
    return [(found.code, found.message) for found in caught.value.diagnostics]


@pytest.fixture
def numbers(tmp_path):
    """A folder with an item of one number in each of ten files."""
    for number in range(10):
        np.save(tmp_path / f"{number}.npy", np.full(1, float(number)))
    return tmp_path


def test_files_are_sent_once_each_before_any_is_sent_again_in_an_order_of_the_seed(numbers):
    first = [float(arrays["x"][0, 0]) for arrays in pool_of(NUMBERS, data=str(numbers), pool=20)]
    assert sorted(first[:10]) == list(range(10))
    assert first[:10] != list(range(10))
    assert first[10:] == first[:10]
    assert [float(arrays["x"][0, 0]) for arrays in pool_of(NUMBERS, data=str(numbers), pool=20)] == first
    assert [float(arrays["x"][0, 0]) for arrays in pool_of(NUMBERS, data=str(numbers), pool=20, seed=1)] != first


@pytest.mark.parametrize("kind", ["npz", "npy", "folder"])
def test_data_without_any_item_is_refused(kind, tmp_path):
    empty, path = np.empty((0, 1), np.float32), tmp_path / ("data" if kind == "folder" else f"data.{kind}")
    if kind == "npz":
        np.savez(path, x=empty)
    elif kind == "npy":
        np.save(path, empty)
    else:
        path.mkdir()
        np.save(path / "x.npy", empty)
    ((code, message),) = problems(NUMBERS, data=str(path))
    assert code == "TG423"
    assert "holds no item" in message


@pytest.mark.parametrize("data", ["gone", "gone.npz", "gone.npy", "gone.txt", "gone/deeper", "x" * 5000, "nul\0"])
@pytest.mark.parametrize("meta", [NUMBERS, TWO], ids=["one input", "two"])
def test_data_that_is_not_there_is_said_whatever_it_would_be(data, meta, tmp_path):
    ((code, message),) = problems(meta, data=f"{tmp_path}/{data}")
    assert (code, message) == ("TG423", f"there is no file or folder {tmp_path}/{data}")


def test_inputs_that_the_data_does_not_have_are_said(tmp_path):
    path = tmp_path / "half.npz"
    np.savez(path, ids=np.zeros((3, 2), np.int64))

    def left_out(**load):
        model = ModelLoad("m", **load)
        return make_pool(LoadPlan((model,), "grpc://h:1", pool=2), model, TWO).left_out

    assert left_out(data=str(path)) == (f"{path} has nothing for mask of m: random values were sent",)
    assert left_out(data=str(path), samples={"mask": [1, 1]}) == left_out() == left_out(data="random") == ()


def test_the_rows_of_a_batch_are_different_items(numbers):
    pool = pool_of(NUMBERS, data=str(numbers), pool=2, batch_mix=((5, 1.0),))
    assert sorted(np.concatenate([arrays["x"] for arrays in pool]).ravel().tolist()) == list(range(10))


def test_items_of_several_inputs_belong_together(tmp_path):
    np.savez(tmp_path / "d.npz", ids=np.arange(20).reshape(10, 2), mask=np.arange(20).reshape(10, 2) + 100)
    for arrays in pool_of(TWO, data=str(tmp_path / "d.npz"), batch_mix=((3, 1.0),)):
        assert (arrays["mask"] - arrays["ids"] == 100).all()


def test_a_folder_has_an_array_or_a_folder_for_each_input(tmp_path):
    np.save(tmp_path / "ids.npy", np.array([[1, 2], [3, 4]]))
    (tmp_path / "mask").mkdir()
    np.save(tmp_path / "mask/only.npy", np.array([1, 0]))
    for arrays in pool_of(TWO, data=str(tmp_path)):
        assert arrays["ids"].tolist() in ([[1, 2]], [[3, 4]])
        assert arrays["mask"].tolist() == [[1, 0]]


def test_pictures_are_read_as_the_spec_says_also_from_another_folder(tmp_path):
    Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "a.png")
    samples = {"x": {"files": "elsewhere", "image": {"range": [-1, 1]}}}
    (arrays,) = pool_of(IMAGES, data=str(tmp_path), samples=samples, pool=1)
    assert arrays["x"][0, :, 0, 0].tolist() == [1, -1, -1]


def test_samples_of_the_spec_are_sent_and_random_leaves_files_out(numbers):
    samples = {"x": {"files": str(numbers)}}
    assert {float(arrays["x"][0, 0]) for arrays in pool_of(NUMBERS, samples=samples, pool=10)} == set(range(10))
    assert not {float(arrays["x"][0, 0]) for arrays in pool_of(NUMBERS, samples=samples, data="random", pool=10)} & set(range(10))
    assert pool_of(NUMBERS, samples={"x": [7.0]}, data="random", pool=1)[0]["x"].tolist() == [[7.0]]


def test_the_spec_knows_better_than_the_config_of_the_server():
    meta = meta_of(("x", "FP32", [1]), parameters={"tritongen.samples": {"string_value": '{"x": [5]}'}})
    assert pool_of(meta, pool=1)[0]["x"].tolist() == [[5.0]]
    assert pool_of(meta, pool=1, samples={"x": [6]})[0]["x"].tolist() == [[6.0]]


@pytest.mark.parametrize(
    ("config", "words", "hint"),
    [
        ({"model_transaction_policy": {"decoupled": True}}, "is decoupled: a request has any number of responses", "stream() of TritonGrpcUser"),
        ({"sequence_batching": {}}, "takes requests of a sequence only", "self.infer(sequence=sequence)"),
    ],
)
def test_a_model_that_takes_no_single_requests_is_refused_with_what_sends_to_it(config, words, hint):
    with pytest.raises(InputError, match=words) as caught:
        check_plain_requests(meta_of(("x", "FP32", [1]), **config))
    assert hint in caught.value.diagnostics[0].hint


def test_a_picture_takes_the_size_that_was_drawn(tmp_path):
    Image.new("RGB", (8, 4)).save(tmp_path / "a.png")
    meta = meta_of(("x", "FP32", [3, -1, -1]))
    mix = (({"x": (3, 2, 2)}, 0.5), ({"x": (3, 6, 6)}, 0.5))
    assert {arrays["x"].shape for arrays in pool_of(meta, data=str(tmp_path), shape_mix=mix)} == {(1, 3, 2, 2), (1, 3, 6, 6)}
    assert {arrays["x"].shape for arrays in pool_of(meta, data=str(tmp_path))} == {(1, 3, 4, 8)}


def test_a_model_that_does_not_batch_gets_whole_items(numbers):
    assert pool_of(meta_of(("x", "FP32", [1]), batch=0), data=str(numbers), pool=1)[0]["x"].shape == (1,)


class TestRefused:
    def test_every_file_that_cannot_be_read_is_named(self, tmp_path):
        for name in "abc":
            (tmp_path / f"{name}.png").write_bytes(b"x")
        Image.new("RGB", (4, 4)).save(tmp_path / "good.png")
        found = problems(IMAGES, data=str(tmp_path), pool=4)
        assert [code for code, _ in found] == ["TG423"] * 3
        assert {name for name in "abc" for _, message in found if f"{name}.png: it is no picture" in message} == set("abc")

    def test_different_numbers_of_items(self, tmp_path):
        np.savez(tmp_path / "d.npz", ids=np.zeros((3, 2), int), mask=np.zeros((4, 2), int))
        ((code, message),) = problems(TWO, data=str(tmp_path / "d.npz"))
        assert (code, "'ids' has 3, 'mask' has 4" in message) == ("TG423", True)

    def test_items_of_different_sizes_in_one_request(self, tmp_path):
        for size in (2, 4):
            Image.new("RGB", (size, size)).save(tmp_path / f"{size}.png")
        ((code, message),) = problems(meta_of(("x", "FP32", [3, -1, -1])), data=str(tmp_path), batch_mix=((2, 1.0),), pool=1)
        assert (code, "items of different sizes meet in a request of 2 rows: (3, 2, 2), (3, 4, 4)" in message) == ("TG423", True)

    @pytest.mark.parametrize(
        ("files", "words"),
        [
            ({"x.npy": 3, "y.npy": 3}, "has entries that are no inputs: y"),
            ({"d.npz": {"z": 3}}, "has arrays that are no inputs: z"),
            ({"d.npz": {}}, "has no arrays"),
            ({"x.npy": (2, 2, 2)}, "or rows of them, got an array [2, 2, 2]"),
            ({}, "holds no item"),
        ],
    )
    def test_data_of_another_model(self, tmp_path, files, words):
        for name, shape in files.items():
            if name.endswith(".npz"):
                np.savez(tmp_path / name, **{member: np.zeros((size, 1)) for member, size in shape.items()})
            else:
                np.save(tmp_path / name, np.zeros(shape if isinstance(shape, tuple) else (shape, 1)))
        ((code, message),) = problems(NUMBERS, data=str(tmp_path / "d.npz" if "d.npz" in files else tmp_path))
        assert (code, words in message) == ("TG423", True), message

    def test_one_file_for_several_inputs(self, tmp_path):
        np.save(tmp_path / "ids.npy", np.zeros((1, 2), int))
        assert "is one file, and the model has the inputs ids, mask" in problems(TWO, data=str(tmp_path / "ids.npy"))[0][1]
        assert "has entries that are no inputs: other" in problems(TWO, data=str(_with(tmp_path, "other")))[0][1]

    def test_data_that_is_not_there_and_a_sample_that_does_not_fit_are_said_at_once(self, tmp_path):
        found = problems(TWO, data=str(tmp_path / "gone.npz"), samples={"mask": ["a", "b"]})
        assert ["gone.npz" in found[0][1], "input 'mask' does not fit" in found[1][1]] == [True, True]

    @pytest.mark.parametrize(("batch", "words"), [(4, "9 rows is more than the model takes (4)"), (0, "takes that does not batch")])
    def test_batches_that_are_too_large(self, batch, words):
        ((code, message),) = problems(meta_of(("x", "FP32", [1]), batch=batch), batch_mix=((9, 1.0),))
        assert (code, words in message) == ("TG420", True)

    def test_sizes_that_are_not_known(self):
        assert "the size of input 'x' [-1] is not known" in problems(meta_of(("x", "FP32", [-1])))[0][1]

    def test_more_than_the_memory_for_them(self, monkeypatch):
        monkeypatch.setattr(payloads, "MOST_POOL_BYTES", 20)
        ((code, message),) = problems(NUMBERS, pool=8)
        assert (code, "8 requests take more than" in message) == ("TG420", True)


def _with(folder, name):
    (folder / name).mkdir()
    return folder


def test_sizes_of_what_is_no_input_are_refused():
    ((code, message),) = problems(NUMBERS, shape_mix=(({"x": (1,), "extra": (4,)}, 1.0),))
    assert (code, message) == ("TG420", "sizes are given of what is no input: 'extra'")


@pytest.mark.parametrize(("item", "words"), [((2**40,), "a single request takes more than 1 GiB"), ((2**25,), "64 requests take more than 1 GiB")])
def test_what_would_take_too_much_memory_is_refused_before_it_is_made(monkeypatch, item, words):
    monkeypatch.setattr(payloads, "random_values", lambda dtype, shape, rng: np.broadcast_to(np.float32(0), shape))
    with pytest.raises(InputError, match=words):
        pool_of(meta_of(("x", "FP32", [-1])), pool=64, shape_mix=(({"x": item}, 1.0),))
