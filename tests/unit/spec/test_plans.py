"""`tensorrt.profiles`, `shape_tensors` and `build` of a spec: what is refused, and where."""

from __future__ import annotations

import pytest


def test_everything_that_can_be_said(folder):
    model = folder.model(
        "backend: tensorrt, tensorrt: {profiles: [{batch: 1}, {batch: 8, shapes: {x: {min: [1], opt: [64], max: [128]}}}],"
        " shape_tensors: {size: {min: [32, 32], opt: [224, 224], max: [512, 512]}}, build: {max_workspace_size: 4GiB, builder_optimization_level: 5,"
        " compute_capabilities: ['8.6', '12.0'], hardware_compatibility: ampere_plus, version_compatible: true, refit: true, strip_weights: true,"
        " plugins: [libmine.so, /opt/more.so], gpu_fallback: false}}"
    )
    assert [profile.batch for profile in model.tensorrt.profiles] == [1, 8]
    assert model.tensorrt.profiles[1].shapes["x"].max == (128,)
    assert model.tensorrt.shape_tensors["size"].opt == (224, 224)
    assert model.tensorrt.build.max_workspace_size == 4 << 30
    assert model.tensorrt.build.compute_capabilities == ("8.6", "12.0")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("build: {compute_capabilities: [8.6]}", 'write "8.6", in quotes'),
        ('build: {compute_capabilities: ["86"]}', "expected a compute capability"),
        ('build: {compute_capabilities: ["9.0", "8.6"]}', 'write ["8.6", "9.0"]'),
        ('build: {compute_capabilities: ["9.0", "9.0"]}', 'write ["9.0"]'),
        ("build: {builder_optimization_level: 6}", "builder_optimization_level"),
        ("build: {max_workspace_size: 4}", "unit"),
        ("build: {workspace: 4GiB}", "max_workspace_size"),
        ("shape_tensors: {size: {min: [4], opt: [2], max: [8]}}", "opt is [2] and min is [4]"),
        ("shape_tensors: {size: {min: [4], opt: [4, 4], max: [8]}}", "opt is [4, 4] and min is [4]"),
        ("profiles: [{batch: 0}]", "batch"),
    ],
)
def test_what_is_refused_in_words(folder, written, words):
    problem = folder.model_finding(f"backend: tensorrt, tensorrt: {{{written}}}")
    assert words in f"{problem.message} {problem.hint}"
