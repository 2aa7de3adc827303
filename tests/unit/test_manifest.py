"""Manifests of plans: written, read back, and each difference that matters said by itself."""

import dataclasses
import json
from pathlib import PurePosixPath

import pytest

from tritongen.manifest import Builder, load_manifest, make_manifest, manifest_path, print_manifest, read_manifest
from tritongen.recipe import PlanFile, PlanRecipe, Profile, Span
from tritongen.staleness import LoadedBy, not_loadable, other_tensorrt, stale

ONNX = PurePosixPath("model.onnx")
RECIPE = PlanRecipe(
    model="m",
    version=1,
    plans=(PlanFile("model.plan"),),
    onnx=ONNX,
    files={ONNX: "ab" * 32},
    profiles=(Profile({"x": Span((1, 8), (4, 8), (16, 8))}, {"size": Span((1,), (2,), (3,))}),),
    precision="fp16",
    workspace_bytes=1 << 30,
    release="25.08",
)
BUILDER = Builder("tensorrt", "10.13.2.6", "13.0.1", "8.6", "NVIDIA A10G", "580.65.06", "25.08", "0.1.0")
MANIFEST = make_manifest(RECIPE, "cd" * 32, BUILDER)
PLAN = RECIPE.plans[0]
HERE = LoadedBy("25.08", "10.13.2.6", "8.6")


def reasons(manifest=MANIFEST, recipe=RECIPE, plan=PLAN, loader=HERE):
    return stale(manifest, recipe, plan, loader)


def test_a_manifest_is_read_as_it_was_written():
    assert read_manifest(print_manifest(MANIFEST)) == MANIFEST
    assert reasons(read_manifest(print_manifest(MANIFEST))) == ()


def test_each_key_has_a_line_of_its_own_so_that_a_shell_can_read_it():
    lines = print_manifest(MANIFEST).splitlines()
    assert f' "fingerprint": "{RECIPE.fingerprint}",' in lines
    assert len(lines) == len(dataclasses.fields(Builder)) + 6


def test_each_plan_has_a_manifest_of_its_own():
    assert len({manifest_path(version, name) for version in (1, 2) for name in ("model.plan", "model.plan.86")}) == 4


CHANGED = {
    "files": ({ONNX: "ef" * 32}, "was built from another model.onnx (SHA-256 abababababab...; it is now SHA-256 efefefefefef...)"),
    "profiles": (
        (Profile({"x": Span((1, 8), (8, 8), (32, 8))}),),
        "was built with other sizes in profile 0: x 1x8 to 16x8, tuned for 4x8; size 1 to 3, tuned for 2; asked for are x 1x8 to 32x8, tuned for 8x8",
    ),
    "precision": ("fp32", "was built with precision fp16, and fp32 is asked for"),
    "strongly_typed": (True, "was built with binding types off, and on is asked for"),
    "tf32": (False, "was built with TF32 on, and off is asked for"),
    "workspace_bytes": (None, "was built with workspace in bytes 1073741824, and none is asked for"),
    "optimization_level": (5, "was built with optimization level none, and 5 is asked for"),
    "version_compatible": (True, "was built with version compatibility off, and on is asked for"),
    "hardware_compatibility": ("ampere_plus", "was built with hardware compatibility none, and ampere_plus is asked for"),
    "strip": (True, "was built with stripped weights off, and on is asked for"),
    "refit": (True, "was built with refitting off, and on is asked for"),
    "plugins": (("a.so", "b.so"), "was built with plugins none, and a.so, b.so is asked for"),
    "dla_core": (0, "was built with deep learning accelerator none, and 0 is asked for"),
    "gpu_fallback": (False, "was built with fallback to the GPU on, and off is asked for"),
}


@pytest.mark.parametrize("key", CHANGED)
def test_each_option_that_changed_is_said(key):
    value, words = CHANGED[key]
    assert reasons(recipe=dataclasses.replace(RECIPE, **{key: value})) == (words,)


RTX = make_manifest(RECIPE, "cd" * 32, dataclasses.replace(BUILDER, kind="tensorrt-rtx", tensorrt="1.2.0.54", release=""))


@pytest.mark.parametrize("key", CHANGED)
def test_what_makes_no_other_plan_of_tensorrt_rtx_is_not_compared(key):
    value, words = CHANGED[key]
    without_effect = key in ("precision", "strongly_typed", "hardware_compatibility")
    found = reasons(RTX, dataclasses.replace(RECIPE, **{key: value}), loader=LoadedBy(kind="tensorrt-rtx"))
    assert found == (() if without_effect else (words,))


def test_of_a_change_of_precision_what_tensorrt_rtx_heeds_is_said():
    asked = dataclasses.replace(RECIPE, precision="fp32", strongly_typed=True, tf32=False)
    assert reasons(RTX, asked, loader=LoadedBy(kind="tensorrt-rtx")) == ("was built with TF32 on, and off is asked for",)


def test_every_build_option_of_a_recipe_is_compared():
    assert set(CHANGED) == set(RECIPE.build_options)


def test_a_profile_more_and_external_data_that_came_or_went_are_said():
    assert reasons(recipe=dataclasses.replace(RECIPE, profiles=())) == ("was built with 1 profiles, and 0 are asked for",)
    weights = dataclasses.replace(RECIPE, files={**RECIPE.files, PurePosixPath("w.bin"): "12" * 32})
    assert reasons(recipe=weights) == ("was built from another w.bin (none; it is now SHA-256 121212121212...)",)


def test_all_differences_are_said_not_the_first():
    changed = dataclasses.replace(RECIPE, precision="fp32", tf32=False, optimization_level=1)
    assert len(reasons(recipe=changed, loader=LoadedBy("26.07", compute_capability="9.0"))) == 5


OTHERS = {
    "cuda": "12.0",
    "gpu": "NVIDIA RTX A6000",
    "driver": "1.2",
    "release": "25.09",
    "tritongen": "9.9",
}


@pytest.mark.parametrize("key", OTHERS)
def test_what_does_not_matter_alone_makes_no_plan_stale(key):
    assert reasons(dataclasses.replace(MANIFEST, builder=dataclasses.replace(BUILDER, **{key: OTHERS[key]}))) == ()


def test_where_the_plan_goes_makes_it_not_stale():
    moved = dataclasses.replace(RECIPE, model="other", version=7, plans=(PlanFile("b.plan", timing_cache="t"),), release="25.09")
    assert reasons(recipe=moved) == ()


BUILT = {
    "kind": ("tensorrt-rtx", "was built by tensorrt-rtx, and tensorrt loads no such plan"),
    "tensorrt": ("10.3.0.26", "was built with TensorRT 10.3.0.26 (release 25.08), and what loads it has 10.13.2.6"),
    "compute_capability": ("8.9", "was built on a GPU of compute capability 8.9, and this GPU has 8.6"),
}


@pytest.mark.parametrize("key", BUILT)
def test_each_thing_about_the_builder_that_matters_is_said(key):
    value, words = BUILT[key]
    assert reasons(dataclasses.replace(MANIFEST, builder=dataclasses.replace(BUILDER, **{key: value}))) == (words,)


def test_every_field_of_a_builder_is_known_to_matter_or_not_to():
    assert {field.name for field in dataclasses.fields(Builder)} == {*BUILT, *OTHERS}


def test_the_gpu_that_a_plan_is_for_counts_without_a_gpu_at_hand():
    (reason,) = reasons(plan=PlanFile("model.plan.90", "9.0"), loader=LoadedBy())
    assert reason == "was built on a GPU of compute capability 8.6, and the plan is for 9.0"


@pytest.mark.parametrize(("level", "gpu", "good"), [("ampere_plus", "9.0", True), ("ampere_plus", "7.5", False), ("same_compute_capability", "9.0", False)])
def test_hardware_compatible_plans_run_on_more_gpus(level, gpu, good):
    recipe = dataclasses.replace(RECIPE, hardware_compatibility=level)
    manifest = make_manifest(recipe, "cd" * 32, BUILDER)
    assert (stale(manifest, recipe, PLAN, dataclasses.replace(HERE, compute_capability=gpu)) == ()) is good


@pytest.mark.parametrize(
    ("version", "release", "built_in", "later_too", "words"),
    [
        ("10.13.2.6", "25.08", "", False, ""),
        ("10.13.2", "25.08", "", False, ""),
        ("10.3.0.26", "25.08", "24.08", False, "was built with TensorRT 10.3.0.26 (release 24.08), and release 25.08 has 10.13.2.6"),
        ("10.3.0.26", "25.08", "", True, ""),
        ("10.14.1.48", "25.08", "", True, "was built with TensorRT 10.14.1.48, and release 25.08 has 10.13.2.6"),
        ("10.16.1.11", "26.07", "", True, "was built with TensorRT 10.16.1.11, and release 26.07 has 11.1.0.106"),
        # The table says 10.13.2.6; the image itself knows the last number better.
        ("10.13.2.7", "25.08", "25.08", False, ""),
        ("10.13.2.7", "25.08", "", False, "was built with TensorRT 10.13.2.7, and release 25.08 has 10.13.2.6"),
        # The -trtllm image of a release has another TensorRT than the one that Triton is served from.
        (
            "10.11.0.33",
            "25.08",
            "25.08",
            False,
            "was built with TensorRT 10.11.0.33 (the -trtllm image of release 25.08), and the -py3 image of release 25.08 has 10.13.2.6",
        ),
        ("10.11.0.33", "25.08", "25.08", True, ""),
        (
            "10.10.0.31",
            "25.07",
            "25.07",
            False,
            "was built with TensorRT 10.10.0.31 (the -trtllm image of release 25.07), and the -py3 image of release 25.07 has 10.11.0.33 or newer",
        ),
        ("10.12.0.1", "25.07", "25.07", False, ""),
        # Not known exactly: at least that of the release before.
        ("10.11.0.33", "25.07", "", False, ""),
        # And at most that of the release after.
        ("11.1.0.106", "25.07", "", False, "was built with TensorRT 11.1.0.106, and release 25.07 has 10.11.0.33 or newer"),
        ("10.3.0.26", "25.07", "", False, "was built with TensorRT 10.3.0.26, and release 25.07 has 10.11.0.33 or newer"),
        (
            "10.11.0.33",
            "25.07",
            "25.06",
            False,
            "was built with TensorRT 10.11.0.33 (release 25.06), and release 25.07 has 10.11.0.33 or newer, which of them is not known",
        ),
        ("10.11.0.33", "25.07", "25.06", True, ""),
        ("", "25.08", "", False, ""),
        ("10.1", "", "", False, ""),
        ("10.1", "", "25.07", False, ""),
        # Nor is it known whether two releases of unknown TensorRT have the same.
        (
            "10.12.0.1",
            "25.07",
            "25.06",
            False,
            "was built with TensorRT 10.12.0.1 (release 25.06), and release 25.07 has 10.11.0.33 or newer, which of them is not known",
        ),
        ("11.5.0.1", "27.02", "27.02", False, ""),
        ("11.5.0.1", "27.02", "", False, ""),
        ("11.5.0.1", "27.02", "27.01", True, ""),
        ("11.5.0.1", "27.02", "27.01", False, "was built with TensorRT 11.5.0.1 (release 27.01), and which TensorRT release 27.02 has is not known"),
    ],
)
def test_versions_are_compared_as_far_as_they_are_known(version, release, built_in, later_too, words):
    loader = LoadedBy(release)
    assert other_tensorrt(version, loader, built_in=built_in, later_too=later_too) == words


def test_two_releases_with_the_same_tensorrt_share_a_plan():
    builder = dataclasses.replace(BUILDER, tensorrt="10.13.3.9", release="25.09")
    assert not_loadable(make_manifest(RECIPE, "", builder), PLAN, LoadedBy("25.10")) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no manifest"),
        ("{}", "no manifest"),
        ('{"fingerprint": 3}', "format None"),
        (print_manifest(MANIFEST).replace('"format": 1', '"format": 2'), "format 2"),
        (print_manifest(MANIFEST).replace('"kind": "tensorrt"', '"kind": 3'), "by hand: kind"),
        (print_manifest(MANIFEST).replace('"options": {', '"other": {'), "by hand: options"),
        (print_manifest(MANIFEST).replace('"tf32": true', '"tf32": false'), "by hand: options"),
        (print_manifest(MANIFEST).replace("10.13.2.6", ""), "by hand: tensorrt"),
        (print_manifest(MANIFEST).replace("10.13.2.6", "10"), "by hand: tensorrt"),
        (print_manifest(MANIFEST).replace('"8.6"', '"x"'), "by hand: compute_capability"),
        (json.dumps(json.loads(print_manifest(MANIFEST))), "edited by hand, or written anew by another program"),
        (print_manifest(MANIFEST).replace('"format": 1', '"format": true'), "edited by hand"),
    ],
)
def test_what_is_no_manifest_is_refused_in_words(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_manifest(text)


@pytest.mark.parametrize("options", [{}, {"files": 3, "profiles": [3]}, {"profiles": [{"shapes": {"x": {}}}], "plugins": {"a": 1}}, {"profiles": [None]}])
def test_a_manifest_with_options_that_nobody_wrote_is_stale_and_no_traceback(options):
    found = reasons(dataclasses.replace(MANIFEST, options=options))
    assert any("model.onnx" in reason for reason in found)
    assert any("profile" in reason for reason in found)


def test_options_that_this_version_does_not_know_are_a_recipe_that_cannot_be_compared():
    assert reasons(dataclasses.replace(MANIFEST, options={**MANIFEST.options, "later": True})) == (
        "was built by a recipe that cannot be compared with this one",
    )


def test_a_manifest_that_is_not_there_is_none(tmp_path):
    assert load_manifest(tmp_path / "1/model.plan.manifest.json") is None
    (tmp_path / "file").write_text("")
    assert load_manifest(tmp_path / "file/model.plan.manifest.json") is None
    (tmp_path / "m.json").write_text(print_manifest(MANIFEST))
    assert load_manifest(tmp_path / "m.json").builder == BUILDER
