"""What trtexec is told: only options that it has, in the release that loads the plan."""

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

from options import known_options
from running import Site, recipe, shells

from tritongen.recipe import Profile, Span
from tritongen.releases import RELEASES, tensorrt_major_of
from tritongen.render.trtexec import trtexec_options

PROFILES = (
    Profile({"x": Span((1, 3), (4, 3), (8, 3)), "y:0": Span((1,), (1,), (2,))}, {"size": Span((0,), (2,), (3,))}),
    Profile({"x": Span((1,), (2,), (3,))}),
)
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8")
EVERYTHING = {
    "workspace_bytes": 3 << 29,
    "optimization_level": 4,
    "version_compatible": True,
    "refit": True,
    "plugins": ("liba.so", "/opt/b.so"),
    "dla_core": 1,
    "tf32": False,
}


def options(**rest):
    return trtexec_options(recipe(**rest)).options


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_trtexec_of_each_release_has_all_options_that_it_is_told(release):
    known = known_options(release.least_tensorrt)
    newer = {} if release.least_tensorrt_major < 10 else {"strip": True, "profiles": PROFILES}
    for precision in PRECISIONS:
        for typed in (True, False):
            for more in ({}, EVERYTHING | newer | {"hardware_compatibility": "same_compute_capability"}):
                told = options(release=release.name, precision=precision, strongly_typed=typed, **more)
                assert {option.partition("=")[0] for option in told} <= known | ({"--bf16"} if release.least_tensorrt_major < 10 else set())


@pytest.mark.parametrize(("release", "typed", "free"), [("24.04", set(), {"--fp16"}), ("25.08", {"--stronglyTyped"}, {"--fp16"}), ("26.07", set(), set())])
def test_precision_is_told_where_there_is_a_word_for_it(release, typed, free):
    words = {"--fp16", "--bf16", "--int8", "--stronglyTyped"}
    assert set(options(release=release, precision="fp16", strongly_typed=True)) & words == typed
    assert set(options(release=release, precision="fp16", strongly_typed=False)) & words == free
    assert ("--noTF32" in options(tf32=False)) is True


@pytest.mark.parametrize(("release", "version"), [("24.04", "8.6.3"), ("25.08", "10.13.2.6"), ("26.07", "11.1.0.106")])
def test_trtexec_takes_the_values_too(release, version, tmp_path):
    site = Site(tmp_path, dict(shells())["dash"], version=version)
    many = PROFILES[:1] if version.startswith("8") else PROFILES
    site.place(recipe(release=release, **EVERYTHING, profiles=many, hardware_compatibility="ampere_plus"))
    run = site.run()
    assert (run.returncode, run.stderr) == (0, "")
    (call,) = site.calls()
    assert [sorted(profile["--maxShapes"]) for profile in call["profiles"]] == [["size", "x", "y:0"], ["x"]][: len(many)]


def test_shapes_and_values_are_told_for_each_profile_in_its_place():
    assert options(profiles=PROFILES)[-8:] == (
        "--profile=0",
        "--minShapes=x:1x3,y:0:1,size:0",
        "--optShapes=x:4x3,y:0:1,size:2",
        "--maxShapes=x:8x3,y:0:2,size:3",
        "--profile=1",
        "--minShapes=x:1",
        "--optShapes=x:2",
        "--maxShapes=x:3",
    )
    assert not any("--profile" in option for option in options(profiles=PROFILES[:1]))
    assert not any("hapes" in option for option in options(profiles=()))


@pytest.mark.parametrize(("size", "text"), [(1 << 30, "1024"), (3 << 29, "1536"), (1 << 19, "0.5"), (1, "0.00000095367431640625"), (100 << 20, "100")])
def test_the_workspace_is_told_in_mib(size, text):
    assert f"--memPoolSize=workspace:{text}" in options(workspace_bytes=size)
    assert float(text) * (1 << 20) == size


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"profiles": (Profile({"a,b": Span((1,), (1,), (2,))}),)}, "input 'a,b'"),
        ({"profiles": (Profile({}, {"it's": Span((1,), (1,), (2,))}),)}, '''input "it's"'''),
        ({"profiles": (Profile({"a\0b": Span((1,), (1,), (2,))}),)}, r"input 'a\x00b'"),
        ({"profiles": PROFILES, "release": "24.04"}, "trtexec of release 24.04 cannot build a plan with several profiles"),
        ({"strip": True, "release": "24.04"}, "trtexec of release 24.04 cannot leave the weights out of a plan"),
    ],
)
def test_what_it_cannot_be_told_is_a_problem_and_no_option(change, words):
    told = trtexec_options(dataclasses.replace(recipe(), **change))
    assert told.options == ()
    (problem,) = told.problems
    assert words in problem.message
    assert problem.is_final is (change.get("release") == "24.04")


@pytest.mark.parametrize(("release", "major"), [("24.04", 8), ("24.05", 10), ("25.07", 10), ("26.06", 11), ("26.10", 11), ("27.01", 11), ("23.12", 8)])
def test_releases_that_are_not_in_the_table_are_taken_for_the_nearest(release, major):
    assert tensorrt_major_of(release) == major
