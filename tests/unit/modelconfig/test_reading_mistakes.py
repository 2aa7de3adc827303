"""What a person is told about each mistake in a config.pbtxt: one finding, at the right place, with what was probably meant; and what `--fix` makes of it."""

import pytest
from google.protobuf import text_format

from tests.unit.modelconfig.mistakes import ONE
from tests.unit.modelconfig.several_mistakes import SEVERAL
from tritongen.diagnostics import Severity
from tritongen.modelconfig import ModelConfig
from tritongen.modelconfig.reading import apply_fixes, read_config


def encoded(text):
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize(("text", "code", "place", "said", "fixed"), ONE, ids=[repr(case[0])[:60] for case in ONE])
def test_one_mistake_gives_one_finding(text, code, place, said, fixed):
    read = read_config(encoded(text), "m/config.pbtxt")
    assert not read.ok
    [finding] = read.diagnostics
    assert (finding.code, f"{finding.location.line}:{finding.location.column}") == (code, place), finding
    assert said in finding.hint or said in finding.message
    assert finding.severity is Severity.ERROR
    assert finding.consequence.startswith("Triton refuses the model")
    assert finding.message
    assert finding.hint
    assert str(finding.location).startswith("m/config.pbtxt:")


@pytest.mark.parametrize(("text", "fixed"), [(case[0], case[4]) for case in ONE], ids=[repr(case[0])[:60] for case in ONE])
def test_a_fix_gives_a_config_that_protobuf_reads_and_that_says_what_was_understood(text, fixed):
    read = read_config(encoded(text), "config.pbtxt")
    if fixed is None:
        assert not read.fixes
        return
    mended = apply_fixes(encoded(text), read.fixes)
    assert mended.decode() == fixed
    assert read_config(mended, "config.pbtxt").config == text_format.Parse(mended, ModelConfig()) == read.config


@pytest.mark.parametrize(("text", "expected"), SEVERAL, ids=[repr(case[0])[:60] for case in SEVERAL])
def test_every_mistake_is_found_and_nothing_else(text, expected):
    read = read_config(encoded(text), "config.pbtxt")
    assert not read.ok
    assert [f"{finding.code} {finding.location.line}:{finding.location.column}" for finding in read.diagnostics] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name: "$MODEL"', ["1:7"]),
        ('name: "{{ .Values.name }}"\nmax_batch_size: ${SIZE}', ["1:7"]),
        ('input { name: "x-${I}" dims: 1 }\nensemble_scheduling { step { model_name: "<STEP>" } }', ["1:15", "2:42"]),
        ('model_warmup { inputs { key: "a" value { input_data_file: "%FILE%" } } }', ["1:59"]),
    ],
)
def test_a_place_of_a_template_in_a_string_is_a_warning_whether_the_file_parses_or_not(text, expected):
    """Triton takes it for the text itself, so that it is no mistake of the text."""
    read = read_config(encoded(text), "config.pbtxt")
    assert [f"{note.location.line}:{note.location.column}" for note in read.notes] == expected
    assert {(note.code, note.severity) for note in read.notes} == {("TG205", Severity.WARNING)}


@pytest.mark.parametrize(
    "text",
    [
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }',
        'parameters { key: "tokenizer_dir" value { string_value: "${tokenizer_dir}" } }',
        'metric_tags { key: "a" value: "{{ x }}" }',
        'input { name: "a$b" } output { name: "serving_default_x:0" }',
    ],
)
def test_dollars_that_may_be_meant_are_no_places_of_a_template(text):
    assert read_config(encoded(text), "config.pbtxt").notes == ()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('parameters { key: "A" value { string_value: "1" } }\nparameters { key: "A" value { string_value: "2" } }\n', 2, "'A' is given twice in 'parameters'"),
        ('metric_tags [ { key: "A" value: "1" }, { key: "A" value: "1" } ]\n', 1, "'A' is given twice in 'metric_tags'"),
        (
            'ensemble_scheduling { step { input_map { key: "x" value: "a" } input_map { value: "b" key: "x" } } }\n',
            1,
            "'x' is given twice in 'input_map'",
        ),
    ],
)
def test_a_key_given_twice_in_a_map_parses_and_is_said(text, line, said):
    read = read_config(text.encode(), "config.pbtxt")
    (note,) = read.notes
    assert read.ok
    assert (note.code, note.severity) == ("TG213", Severity.WARNING)
    assert said in note.message
    assert note.location.line == line


def test_the_same_key_in_different_maps_is_fine():
    text = 'parameters { key: "A" value { string_value: "1" } }\nmetric_tags { key: "A" value: "1" }\n'
    assert read_config(text.encode(), "config.pbtxt").notes == ()
