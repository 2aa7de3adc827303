"""Real builds by TensorRT-RTX on the CPU: what it is given, what it gives, and what it refuses, in words."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.unit.build.making import batches, define, library, ranges, recipe, relu, save, span
from tritongen.build import Definition, Job, Silent, TensorRTBuilder, load_library
from tritongen.build.libraries import Library
from tritongen.build.options import configure
from tritongen.errors import EnvironmentProblem, MissingExtra, ModelFileError
from tritongen.recipe import Profile
from tritongen.rewrite import rebatch
from tritongen.signature.plan import TENSORRT_RTX, read_plan_header


def refused(path: Path, *profiles: Profile, **changes: object):
    with pytest.raises(ModelFileError) as caught:
        define(path, *profiles, **changes)
    return caught.value.diagnostics


class TestWhatIsBuilt:
    def test_profiles_reach_tensorrt_as_the_recipe_has_them(self, tmp_path):
        definition = define(relu(tmp_path / "m.onnx"), batches(1, 4, 16, 8), batches(1, 16, 16, 8))
        assert ranges(definition) == [[(1, 8), (4, 8), (16, 8)], [(1, 8), (16, 8), (16, 8)]]
        assert definition.config.num_optimization_profiles == 2

    def test_the_plan_is_one_of_tensorrt_rtx_and_the_same_each_time(self, tmp_path):
        path = relu(tmp_path / "m.onnx")
        plans = [define(path, batches(1, 4, 16, 8)).build(Silent(), Event()).plan for _ in range(2)]
        header = read_plan_header(bytes(plans[0]))
        assert (header.kind, header.version) == (TENSORRT_RTX, library().version)
        assert len({len(plan) for plan in plans}) == 1

    def test_a_fixed_network_needs_no_profile(self, tmp_path):
        definition = define(relu(tmp_path / "m.onnx", (1, 8)))
        assert definition.config.num_optimization_profiles == 0
        assert definition.build(Silent(), Event()).plan

    def test_values_of_a_shape_tensor(self, tmp_path):
        path = reshaped(tmp_path / "m.onnx")
        definition = define(path, Profile({}, {"s": span((1, 1), (4, 4), (16, 16))}))
        assert [list(values) for values in definition.profiles[0].get_shape_input("s")] == [[1, 1], [4, 4], [16, 16]]

    def test_weights_beside_the_file_are_found(self, tmp_path):
        weights = numpy_helper.from_array(np.ones((8, 4), np.float32), "w")
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
            [weights],
        )
        path = tmp_path / "m.onnx"
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
        assert define(path, batches(1, 2, 4, 8)).build(Silent(), Event()).plan

    @pytest.mark.parametrize("name", ["squeezenet"])
    def test_a_rebatched_network(self, name, tmp_path):
        path = rebatch(networks.light(name, tmp_path), tmp_path / "batched.onnx").path
        (value,) = [value for value in onnx.load(path).graph.input if value.name == "data_0"]
        assert value.type.tensor_type.shape.dim[0].dim_param
        definition = define(path, batches(1, 4, 8, 3, 224, 224, name="data_0"))
        assert ranges(definition, "data_0") == [[(1, 3, 224, 224), (4, 3, 224, 224), (8, 3, 224, 224)]]
        assert len(definition.build(Silent(), Event()).plan) > path.stat().st_size / 2

    def test_the_options_of_a_recipe(self, tmp_path):
        changes = {"tf32": False, "workspace_bytes": 64 << 20, "optimization_level": 2, "refit": True}
        config = define(relu(tmp_path / "m.onnx"), batches(1, 1, 2, 8), capabilities=("8.6", "12.0"), **changes).config
        module = library().module
        assert not config.get_flag(module.BuilderFlag.TF32)
        assert config.get_flag(module.BuilderFlag.REFIT)
        assert not config.get_flag(module.BuilderFlag.STRIP_PLAN)
        assert config.get_memory_pool_limit(module.MemoryPoolType.WORKSPACE) == 64 << 20
        assert config.builder_optimization_level == 2
        assert [config.get_compute_capability(index) for index in range(config.num_compute_capabilities)] == [
            module.ComputeCapability.SM86,
            module.ComputeCapability.SM120,
        ]

    def test_what_is_not_asked_for_stays_as_tensorrt_has_it(self, tmp_path):
        config = define(relu(tmp_path / "m.onnx"), batches(1, 1, 2, 8)).config
        fresh = library().module.Builder(library().module.Logger()).create_builder_config()
        for name in ("flags", "builder_optimization_level", "hardware_compatibility_level", "num_compute_capabilities", "DLA_core"):
            assert getattr(config, name) == getattr(fresh, name), name


def reshaped(path: Path) -> Path:
    """`x` in the shape that the values of `s` give."""
    return save(path, [helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (4, 4), "s": (2,)}, types={"s": TensorProto.INT64})


class TestWhatIsRefused:
    def test_every_node_that_the_parser_refuses_is_named_with_what_to_do(self, tmp_path):
        nodes = [
            helper.make_node("Det", ["x"], ["d"], name="det"),
            helper.make_node("Mine", ["x"], ["y"], name="mine", domain="my.ops"),
        ]
        first, second = refused(save(tmp_path / "m.onnx", nodes, {"x": (4, 4)}, domains=["my.ops"]))
        assert (first.code, second.code) == ("TG090", "TG090")
        assert "node 0 'det', operator Det" in first.message
        assert "UNSUPPORTED_NODE" in first.message
        assert "node 1 'mine', operator Mine" in second.message
        for found in (first, second):
            assert "accelerator: tensorrt" in found.hint
            assert "plugin" in found.hint
            assert found.location.path == str(tmp_path / "m.onnx")

    def test_a_type_that_tensorrt_has_not(self, tmp_path):
        nodes = [helper.make_node("Identity", ["x"], ["y"])]
        (found,) = refused(save(tmp_path / "m.onnx", nodes, {"x": (4,)}, types={"x": TensorProto.STRING}))
        assert "cannot build the file itself" in found.message
        assert "types that TensorRT has" in found.hint

    def test_a_file_that_is_none(self, tmp_path):
        (tmp_path / "m.onnx").write_bytes(b"\x08\x09 nonsense")
        assert {found.code for found in refused(tmp_path / "m.onnx")} == {"TG090"}

    @pytest.mark.parametrize(
        ("profiles", "words"),
        [
            ((), ["input 'x' [-1, 8] has a variable dimension, and no range for it is given"]),
            ((batches(1, 2, 4, 9),), ["input 'x' is [-1, 8], and [1, 9] to [4, 9] is given"]),
            ((batches(1, 2, 4),), ["input 'x' is [-1, 8], and [1] to [4] is given"]),
            ((batches(4, 2, 8, 8),), ["input 'x' is [-1, 8], and [4, 8] to [8, 8] is given"]),
            ((batches(1, 2, 4, 8, name="z"),), ["the network has no input 'z'", "input 'x' [-1, 8] has a variable dimension"]),
            ((batches(1, 2, 4, 8), batches(1, 2, 4, 7)), ["profile 1: input 'x'"]),
            ((Profile(batches(1, 2, 4, 8).shapes, {"x": span((1,), (1,), (1,))}),), ["its values are no sizes in this network"]),
        ],
    )
    def test_profiles_that_do_not_fit_the_network(self, profiles, words, tmp_path):
        found = refused(relu(tmp_path / "m.onnx"), *profiles)
        assert [problem.code for problem in found] == ["TG091"] * len(words)
        for problem, text in zip(found, words, strict=True):
            assert text in problem.message

    def test_a_shape_tensor_whose_values_nobody_gave(self, tmp_path):
        (found,) = refused(reshaped(tmp_path / "m.onnx"))
        assert "the values of input 's' are sizes" in found.message
        assert "shape_tensors: {s:" in found.hint

    def test_options_that_the_library_or_the_machine_lacks(self, tmp_path):
        changes = {"dla_core": 0, "plugins": ("libthere_is_none.so",), "capabilities": ("9.9",)}
        found = refused(relu(tmp_path / "m.onnx"), batches(1, 2, 4, 8), **changes)
        assert {(problem.code, str(problem.location)) for problem in found} == {("TG093", str(tmp_path / "m.onnx"))}
        text = " ".join(problem.message for problem in found)
        assert "TensorRT-RTX" in text
        assert "has no deep learning accelerator" in text
        assert "libthere_is_none.so cannot be loaded" in text
        assert "nothing for compute capability 9.9" in text
        assert "8.6" in next(problem.hint for problem in found if "9.9" in problem.message)

    def test_a_level_that_came_with_a_later_version(self, tmp_path):
        path, module = relu(tmp_path / "m.onnx"), library().module
        definition = define(path, batches(1, 2, 4, 8))
        older = SimpleNamespace(BuilderFlag=module.BuilderFlag, HardwareCompatibilityLevel=SimpleNamespace(NONE=0, AMPERE_PLUS=1))
        wanted = recipe(path, hardware_compatibility="same_compute_capability")
        (found,) = configure(Library("tensorrt", older, "10.0.1"), definition.builder, definition.config, wanted, (), path)
        assert found.code == "TG093"
        assert found.message == "TensorRT 10.0.1 has no hardware compatibility same_compute_capability"

    def test_everything_at_once(self, tmp_path):
        nodes = [helper.make_node("Det", ["x"], ["y"], name="det")]
        found = refused(save(tmp_path / "m.onnx", nodes, {"x": (4, 4)}), plugins=("none.so",))
        assert sorted(problem.code for problem in found) == ["TG090", "TG093"]

    def test_a_build_that_fails_gives_the_reasons_of_the_library(self, tmp_path):
        # Two inputs whose dimension has one name cannot have different sizes.
        path = save(tmp_path / "m.onnx", [helper.make_node("Concat", ["x", "z"], ["y"], axis=1)], {"x": ("N", "S"), "z": ("N", "S")})
        profile = Profile({"x": span((1, 2), (1, 4), (1, 8)), "z": span((1, 3), (1, 6), (1, 9))})
        with pytest.raises(ModelFileError) as caught:
            define(path, profile).build(Silent(), Event())
        (found,) = caught.value.diagnostics
        assert found.code == "TG092"
        assert "Dimensions with name S must be equal" in found.message
        assert found.hint.startswith("give these dimensions the same sizes")

    @pytest.mark.parametrize(
        ("reason", "words"),
        [
            ("Error Code 10: Could not find any implementation for node conv", "max_workspace_size"),
            ("Error Code 2: OutOfMemory (Requested size was 8589934592 bytes.)", "free memory"),
            ("MemoryError: std::bad_alloc", "free memory"),
            ("Network has dynamic inputs, but no optimization profile has been defined.", "tensorrt.profiles"),
            ("Internal Error: something else", "backend: onnxruntime and accelerator: tensorrt"),
        ],
    )
    def test_what_to_do_follows_from_the_reason(self, reason, words, tmp_path):
        definition = define(relu(tmp_path / "m.onnx", (1, 8)))

        class Failing:
            def build_serialized_network(self, network: object, config: object) -> None:
                definition.errors.append(reason)

        definition.builder = Failing()
        with pytest.raises(ModelFileError) as caught:
            definition.build(Silent(), Event())
        assert words in caught.value.diagnostics[0].hint


def handling() -> tuple[bool, object]:
    """What the waiting thread has made of Ctrl-C so far: whether it only outlasts the build, and what the next one does."""
    functions = [frame.f_code.co_name for frame, _ in traceback.walk_stack(sys._current_frames()[threading.main_thread().ident])]
    return "_outlast" in functions[1:], signal.getsignal(signal.SIGINT)


class Interrupting:
    """Sends Ctrl-C to the thread that waits, at the third step, as often as is said."""

    def __init__(self, times: int) -> None:
        self.steps, self.times = 0, times

    def start(self, phase: str, parent: str, steps: int) -> None:
        pass

    def step(self, phase: str, done: int) -> None:
        self.steps += 1
        if self.steps == 3:
            for _ in range(self.times):
                before = handling()
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                while handling() == before:
                    time.sleep(0.01)

    def finish(self, phase: str) -> None:
        pass


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_the_build_at_its_next_step(times, tmp_path):
    path, progress = relu(tmp_path / "m.onnx"), Interrupting(times)
    with pytest.raises(KeyboardInterrupt):
        TensorRTBuilder(library()).build(Job(recipe(path, batches(1, 2, 4, 8)), tmp_path), progress)
    ended_at = progress.steps
    assert ended_at < 10
    time.sleep(0.2)
    assert progress.steps == ended_at
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_a_build_is_started_begins_none(tmp_path, monkeypatch):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *work, **more):
            super().submit(*work, **more)
            raise KeyboardInterrupt

    monkeypatch.setattr("tritongen.build.builder.ThreadPoolExecutor", Interrupted)
    path, progress = relu(tmp_path / "m.onnx"), Interrupting(0)
    with pytest.raises(KeyboardInterrupt):
        TensorRTBuilder(library()).build(Job(recipe(path, batches(1, 2, 4, 8)), tmp_path), progress)
    assert progress.steps == 0


@pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning")
class TestTimingCache:
    """By the code for TensorRT, with the module of TensorRT-RTX: its timing cache has the same interface, and does nothing.

    So what is shown is what TensorRT is given and asked for, and not that a build is faster for it, which takes a GPU.
    """

    def build(self, path: Path, earlier: bytes):
        builder = TensorRTBuilder(Library("tensorrt", library().module, library().version))
        return builder.build(Job(recipe(path, batches(1, 2, 4, 8)), path.parent, timing_cache=earlier), Silent())

    def test_it_is_kept_and_given_to_the_next_build(self, tmp_path):
        path = relu(tmp_path / "m.onnx")
        first = self.build(path, b"")
        assert first.timing_cache
        assert not self.build(path, first.timing_cache).notes

    def test_tensorrt_is_given_the_bytes_that_an_earlier_build_saved(self, tmp_path):
        """And where it refuses them, none; what it holds at the end is what the next build will be given."""
        for accepted, given, notes in ((True, [b"times before"], 0), (False, [b"times before", b""], 1)):
            definition = self.defined(tmp_path, b"times before")
            config = definition.config = Keeping(accepts=accepted)
            definition.builder = Ready()
            built = definition.build(Silent(), Event())
            assert config.given == given
            assert (built.timing_cache, len(built.notes)) == (b"times after", notes)

    def defined(self, folder: Path, earlier: bytes) -> Definition:
        path = relu(folder / "m.onnx")
        builder = TensorRTBuilder(Library("tensorrt", library().module, library().version))
        return builder.define(Job(recipe(path, batches(1, 2, 4, 8)), folder, timing_cache=earlier))


class Times:
    """A timing cache that holds what it was made of, and other times when it is saved."""

    def __init__(self, earlier: bytes) -> None:
        self.earlier = earlier

    def serialize(self) -> bytes:
        return b"times after"


class Keeping:
    """A config that keeps what it is given for its timing cache."""

    def __init__(self, *, accepts: bool) -> None:
        self.accepts, self.given, self.progress_monitor = accepts, list[bytes](), None

    def create_timing_cache(self, earlier: bytes) -> Times:
        return Times(earlier)

    def set_timing_cache(self, cache: Times, ignore_mismatch: bool) -> bool:
        self.given.append(cache.earlier)
        self.held = cache
        return self.accepts or not cache.earlier

    def get_timing_cache(self) -> Times:
        return self.held


class Ready:
    """A builder that has its plan ready: no library takes such a config."""

    def build_serialized_network(self, network: object, config: Keeping) -> bytes:
        return b"a plan"


class TestLibraries:
    def test_stubs_are_not_the_library(self):
        with pytest.raises(MissingExtra, match=r"pip install 'tritongen\[tensorrt\]'") as caught:
            load_library("tensorrt", instead="run the script")
        assert caught.value.hint == "run the script"

    def test_a_library_that_cannot_be_loaded_says_why(self, tmp_path, monkeypatch):
        (tmp_path / "tensorrt.py").write_text("raise OSError('libnvinfer.so.10: cannot open shared object file')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "tensorrt", raising=False)
        with pytest.raises(EnvironmentProblem, match=r"cannot be loaded: libnvinfer\.so\.10"):
            load_library("tensorrt")

    def test_an_old_library_is_refused(self, tmp_path, monkeypatch):
        (tmp_path / "tensorrt.py").write_text("__version__ = '8.6.1.6'\nBuilder = object")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "tensorrt", raising=False)
        with pytest.raises(EnvironmentProblem, match=r"tensorrt 8\.6\.1\.6 is too old"):
            load_library("tensorrt")
