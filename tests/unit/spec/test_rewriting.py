"""`freeze`, `rebatch`, `prove`, `optimize`, and `sources` as the loader reads them."""

import pytest

from tritongen.spec.rewriting import Optimization

HEAD = "version: 1\nmodels:\n  - {{name: m, {}}}\n"


def test_nothing_is_rewritten_unless_asked(folder):
    model = folder.model("")
    assert (model.freeze, model.rebatch, model.prove, model.optimize) == (False, False, "auto", None)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("optimize: none", None),
        ("optimize: offline", Optimization()),
        ("optimize: {level: extended, tolerance: 1e-3}", Optimization(level="extended", tolerance=1e-3)),
        ("optimize: {level: all, hardware: AVX-512 servers}", Optimization(level="all", hardware="AVX-512 servers")),
    ],
)
def test_forms_of_optimize(folder, text, meant):
    assert folder.model(text).optimize == meant
    assert folder.load(f"version: 1\ndefaults: {{{text}}}\nmodels: [{{name: m, source: m.onnx}}]\n").spec.models[0].optimize == meant


def test_a_model_turns_off_what_the_defaults_turn_on(folder):
    defaults = "defaults: {freeze: true, rebatch: true, prove: true, optimize: offline}"
    spec = folder.load(f"version: 1\n{defaults}\nmodels: [{{name: m, source: m.onnx, rebatch: false, prove: false, optimize: none}}]\n").spec
    (model,) = spec.models
    assert (model.freeze, model.rebatch, model.prove, model.optimize) == (True, False, False, None)


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("freeze: 'yes'", "TG010", "freeze: expected true or false, got the text 'yes'", "without quotes"),
        ("rebatch: 1", "TG010", "rebatch: expected true or false, got the number 1", "true or false"),
        ("prove: sometimes", "TG010", "prove: expected auto, true or false", "prove: auto"),
        ("optimize: extended", "TG010", "expected none, offline or a mapping", "optimize: {level: extended}"),
        ("optimize: true", "TG010", "expected none, offline or a mapping", "optimize: offline"),
        ("optimize: {level: best}", "TG011", "expected one of basic, extended, all", "basic"),
        ("optimize: {level: all}", "TG009", "hardware does not say which that is", "add hardware:"),
        ("optimize: {tolerance: 0}", "TG011", "must be more than 0", "more than 0"),
        ("optimize: {tolerance: 2}", "TG011", "must be at most 1", "at most 1"),
        ("optimize: {tolerance: .nan}", "TG010", "finite number", ""),
    ],
)
def test_what_is_wrong_is_said_at_its_key(folder, text, code, message, hint):
    found = folder.model_finding(text)
    assert found.code == code
    assert message in found.message
    assert hint in found.hint


def test_versions_lie_side_by_side_in_ascending_order(folder):
    (model,) = folder.load(HEAD.format("sources: {10: a.onnx, 2: {path: b.onnx}, '3': {package: pydantic, path: main.py}}")).spec.models
    assert [(placed.key, placed.version, placed.source.path) for placed in model.placed] == [
        (("sources", "2"), 2, "b.onnx"),
        (("sources", "3"), 3, "main.py"),
        (("sources", "10"), 10, "a.onnx"),
    ]


def test_each_version_has_a_file_of_its_own(folder):
    loaded = folder.load(HEAD.format("sources: {1: a.onnx, 2: b.onnx}"))
    assert [loaded.source_path(0, version).name for version in (1, 2)] == ["a.onnx", "b.onnx"]


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("backend: onnxruntime", "TG009", "'source' is missing", "add source:"),
        ("sources: {}", "TG011", "sources: the mapping is empty", "sources: {1: a.onnx"),
        ("sources: [a.onnx]", "TG010", "expected a mapping of version numbers to files, got a list", "source: a.onnx"),
        ("source: a.onnx, sources: {1: b.onnx, 2: c.onnx}", "TG015", "source is given, and so is sources (versions 1, 2)", "remove sources"),
        ("sources: {'01': a.onnx}", "TG011", "sources.01: the version '01' starts with 0", "write 1"),
        ("sources: {0: a.onnx}", "TG011", "the version '0' starts with 0", "from 1 on"),
        ("sources: {v1: a.onnx}", "TG011", "'v1' is not the number of a version", "whole numbers"),
        ("sources: {'-1': a.onnx}", "TG011", "'-1' is not the number of a version", "whole numbers"),
        ("sources: {9223372036854775808: a.onnx}", "TG011", "is above 9223372036854775807", "smaller"),
        ("sources: {1: 7}", "TG010", "sources.1: expected a path or a mapping", "source: model.onnx"),
        ("sources: {1: http://x/a.onnx}", "TG011", "URLs are not read", "download"),
        ("sources: {1: {package: no_such_package, path: x}}", "TG017", "'no_such_package' is not installed", "pip install"),
    ],
)
def test_what_is_wrong_with_sources(folder, text, code, message, hint):
    found = folder.finding(HEAD.format(text))
    assert found.code == code
    assert message in found.message
    assert hint in found.hint


def test_every_file_that_is_wrong_is_said(folder):
    found = folder.findings(HEAD.format("sources: {1: no.onnx, 2: 3, x: a.onnx}, freeze: 2"))
    assert sorted(each.code for each in found) == ["TG010", "TG010", "TG011", "TG020"]
    assert next(each for each in found if each.code == "TG020").message.startswith("sources.1: ")


def test_wrong_sources_are_no_missing_source(folder):
    assert folder.finding(HEAD.format("sources: {1: [2]}")).code == "TG010"
