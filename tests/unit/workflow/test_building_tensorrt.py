"""`tritongen build` by TensorRT itself, which needs a GPU: what goes on around it."""

from __future__ import annotations

import re
import sys

import pytest

from tests.unit.workflow.building import Case
from tritongen.build import Built, Device, Job, Library, Progress, State, Wanted, survey
from tritongen.build.survey import read_all_recipes
from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.manifest import read_manifest
from tritongen.workflow.building import Workshop


@pytest.fixture
def case(tmp_path, tritongen):
    return Case(tmp_path, tritongen)


class Carpenter:
    """A builder that makes plans of nothing, or fails."""

    def __init__(self, *, fails: bool = False, cache: bytes = b"times") -> None:
        self.library = Library("tensorrt", None, "10.13.2.6")
        self.fails, self.cache, self.seen = fails, cache, list[Job]()

    def build(self, job: Job, progress: Progress) -> Built:
        self.seen.append(job)
        if self.fails:
            raise ModelFileError([Diagnostic("TG092", "it broke")])
        return Built(memoryview(b"a plan"), self.cache, ("a note",))


GPU = Device("NVIDIA A10G", "8.6", "550.54.15")


@pytest.mark.parametrize(
    ("version", "devices", "words"),
    [
        ("10.13.2.6", (), ["there is no GPU here", "build_plans.sh", "--with tensorrt-rtx"]),
        ("10.3.0.26", (GPU,), ["was built with TensorRT 10.3.0.26, and release 25.08 has 10.13.2.6", "pip install 'tensorrt==10.13.2.6'"]),
    ],
)
def test_what_this_machine_lacks_is_said_before_anything_is_built(case, tmp_path, monkeypatch, version, devices, words):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/tensorrt.py").write_text(f"__version__ = {version!r}\nBuilder = object")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.delitem(sys.modules, "tensorrt", raising=False)
    monkeypatch.setattr("tritongen.workflow.building.find_devices", lambda: devices)
    result = case.build()
    monkeypatch.delitem(sys.modules, "tensorrt")
    assert result.code == 3
    for text in words:
        assert text in result.err
    assert not list(case.root.rglob("*.plan"))


class TestTensorRT:
    """TensorRT itself needs a GPU: here is what goes on around it."""

    def wanted(self, case, *devices: Device, **options: object) -> list[Wanted]:
        case.call("render", case.folder / "spec.yaml")
        return list(survey(case.root, read_all_recipes(case.root), "tensorrt", devices=devices or (GPU,), **options))

    def test_a_plan_goes_where_triton_loads_it(self, case):
        (wanted,) = self.wanted(case)
        outcome = Workshop(Carpenter()).make(wanted, None)
        assert (outcome.state, outcome.notes) == (State.BUILT, ("a note",))
        assert (case.root / "m/1/model.plan").read_bytes() == b"a plan"
        manifest = read_manifest((case.artifacts / "1/model.plan.manifest.json").read_text())
        assert (manifest.builder.compute_capability, manifest.builder.gpu, manifest.builder.driver) == ("8.6", "NVIDIA A10G", "550.54.15")
        assert self.wanted(case) == [Wanted(wanted.recipe, wanted.plan, wanted.path, wanted.artifacts, "tensorrt", device=GPU)]

    def test_a_plan_for_a_release_of_unknown_tensorrt_is_not_one_for_another(self, case):
        def spec(release: str) -> None:
            text = (case.folder / "spec.yaml").read_text()
            (case.folder / "spec.yaml").write_text(re.sub(r'release: "[0-9.]+"', f'release: "{release}"', text))

        spec("26.09")
        (wanted,) = self.wanted(case)
        carpenter = Carpenter()
        carpenter.library = Library("tensorrt", None, "11.2.1.5")
        Workshop(carpenter).make(wanted, None)
        (found,) = self.wanted(case)
        assert found.reasons == ()
        spec("26.10")
        assert case.states("--dry-run") == [
            ("wanted", ["was built with TensorRT 11.2.1.5 (release 26.09), and release 26.10 has 11.2.1 or newer, which of them is not known"])
        ]

    def test_a_setting_that_is_tensorrts_own_makes_no_plan_stale(self, case):
        (wanted,) = self.wanted(case)
        Workshop(Carpenter()).make(wanted, None)
        for level, reasons in (("3", ()), ("4", ("was built with optimization level none, and 4 is asked for",))):
            case.spec(f", tensorrt: {{build: {{builder_optimization_level: {level}}}}}")
            assert case.states("--dry-run") == [("wanted", [*reasons]) if reasons else ("good", [])]

    def test_a_render_keeps_it(self, case):
        (wanted,) = self.wanted(case)
        Workshop(Carpenter()).make(wanted, None)
        assert case.call("render", case.folder / "spec.yaml", "--check").code == 0
        assert (case.root / "m/1/model.plan").is_file()

    def test_the_times_of_one_build_are_given_to_the_next(self, case):
        (wanted,) = self.wanted(case)
        for _ in range(2):
            carpenter = Carpenter()
            Workshop(carpenter).make(wanted, None)
        assert carpenter.seen[0].timing_cache == b"times"

    def test_another_gpu_makes_it_stale(self, case):
        (wanted,) = self.wanted(case)
        Workshop(Carpenter()).make(wanted, None)
        (found,) = self.wanted(case, Device("NVIDIA H100", "9.0", "550.54.15"))
        assert found.reasons == ("was built on a GPU of compute capability 8.6, and this GPU has 9.0",)

    def test_each_kind_of_gpu_builds_its_own_plan(self, case):
        case.spec(', tensorrt: {build: {compute_capabilities: ["8.6", "9.0"]}}')
        here, there = self.wanted(case)
        assert (here.path.name, here.elsewhere) == ("model.sm86.plan", "")
        assert (there.path.name, there.elsewhere) == ("model.sm90.plan", "it is for a GPU of compute capability 9.0, and this one has 8.6")

    def test_a_plan_is_built_on_a_gpu_that_serves_it(self, case):
        a10, h100 = GPU, Device("NVIDIA H100", "9.0", "550.54.15", number=1)
        case.spec(", instances: [{kind: gpu, gpus: [1]}]")
        (wanted,) = self.wanted(case, a10, h100)
        carpenter = Carpenter()
        Workshop(carpenter).make(wanted, None)
        assert [job.device for job in carpenter.seen] == [h100]
        assert read_manifest(wanted.manifest.read_text()).builder.gpu == "NVIDIA H100"
        case.spec(', instances: [{kind: gpu}], tensorrt: {build: {compute_capabilities: ["8.6", "9.0"]}}')
        assert [each.device for each in self.wanted(case, a10, h100)] == [a10, h100]

    @pytest.mark.parametrize(
        ("devices", "keys", "words"),
        [
            ((GPU,), "", "instances name GPU 2, 3, and the only one here has number 0"),
            ((GPU, GPU), "", "instances name GPU 2, 3, and those here have numbers 0 to 1"),
            (
                (GPU, GPU, GPU, Device("NVIDIA T4", "7.5", "1", number=2), Device("NVIDIA A100", "8.0", "1", number=3)),
                ', tensorrt: {build: {compute_capabilities: ["8.6"]}}',
                "it is for a GPU of compute capability 8.6, and those that serve the model here have 7.5, 8.0",
            ),
        ],
    )
    def test_where_no_gpu_here_serves_it_that_is_said(self, case, monkeypatch, devices, keys, words):
        case.spec(f", instances: [{{kind: gpu, gpus: [2, 3]}}]{keys}")
        monkeypatch.setattr("tritongen.workflow.building.find_devices", lambda: devices)
        result = case.build()
        assert result.code == 3
        assert f"model m, version 1: no plan is for this machine; {words}" in result.err
        assert "or its number to instances.gpus" in result.err

    def test_a_gpu_that_no_plan_is_for(self, case, monkeypatch):
        case.spec(', tensorrt: {build: {compute_capabilities: ["8.6", "9.0"]}}')
        monkeypatch.setattr("tritongen.workflow.building.find_devices", lambda: (Device("NVIDIA T4", "7.5", "550.54.15"),))
        result = case.build()
        assert result.code == 3
        assert "model m, version 1: no plan is for this machine; it is for a GPU of compute capability 8.6, and this one has 7.5" in result.err
        assert "add its compute capability to tensorrt.build.compute_capabilities" in result.err
        assert case.build("--dry-run").code == 3

    def test_a_plan_of_the_trtllm_image_of_the_same_release_is_built_again(self, case):
        (wanted,) = self.wanted(case)
        Workshop(Carpenter()).make(wanted, None)
        text = wanted.manifest.read_text().replace("10.13.2.6", "10.11.0.33")
        wanted.manifest.write_text(text)
        assert case.states("--dry-run") == [
            (
                "wanted",
                ["was built with TensorRT 10.11.0.33 (the -trtllm image of release 25.08), and the -py3 image of release 25.08 has 10.13.2.6"],
            )
        ]
        checked = case.call("render", case.folder / "spec.yaml", "--check")
        assert (checked.code, "the -py3 image of release 25.08 has 10.13.2.6" in checked.out) == (1, True)

    @pytest.mark.parametrize("meanwhile", ["rendered", "removed"])
    def test_a_model_that_changes_meanwhile_gets_no_plan_of_the_old_one(self, case, meanwhile):
        (wanted,) = self.wanted(case)

        class Slow(Carpenter):
            def build(self, job: Job, progress: Progress) -> Built:
                if meanwhile == "rendered":
                    case.spec(", precision: tf32")
                    case.call("render", case.folder / "spec.yaml")
                else:
                    case.spec(others="- {name: other, source: m.onnx, backend: tensorrt, batching: {max: 16}}\n")
                    text = (case.folder / "spec.yaml").read_text()
                    (case.folder / "spec.yaml").write_text("".join(line for line in text.splitlines(keepends=True) if "name: m," not in line))
                    case.call("render", case.folder / "spec.yaml", "--prune")
                return super().build(job, progress)

        outcome = Workshop(Slow()).make(wanted, None)
        assert outcome.state is State.FAILED
        assert "another render changed the model" in outcome.problems[0].message
        assert not wanted.path.exists()
        assert wanted.path.parent.exists() == (meanwhile == "rendered")

    def test_a_build_that_fails_leaves_what_was_there(self, case):
        (wanted,) = self.wanted(case)
        Workshop(Carpenter()).make(wanted, None)
        outcome = Workshop(Carpenter(fails=True)).make(wanted, None)
        assert outcome.state is State.FAILED
        assert [problem.code for problem in outcome.problems] == ["TG092"]
        assert sorted(path.name for path in (case.root / "m/1").iterdir()) == ["model.plan"]
