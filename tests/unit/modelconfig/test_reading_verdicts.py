"""What the reader accepts is what protobuf accepts, and then it reads the same; where C++ protobuf and Python's differ, it goes with C++.

The verdicts on DIFFERENT were taken from C++ protobuf itself; tests/server/test_pbtxt_live.py asks the parser that is in Triton.
"""

import math
import time

import config_texts
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from tritongen.diagnostics import Severity
from tritongen.modelconfig import ModelConfig
from tritongen.modelconfig.reading import DIFFERENCES, MAX_BYTES, MAX_FINDINGS, apply_fixes, read_config

BUCKETS = b"model_metrics { metric_control { histogram_options { buckets: %s } } }"

# One entry for each row of DIFFERENCES: texts on which C++ and Python disagree, with what C++ reads where it accepts them.
DIFFERENT = [
    {b"max_batch_size: - 1": {"max_batch_size": -1}, b"max_batch_size: -# minus\n1": {"max_batch_size": -1}},
    {b"max_batch_size: +1": None, BUCKETS % b"+1.5": None},
    {b"max_batch_size: 1_0": None, b"max_batch_size: 0b1": None, b"max_batch_size: 0o7": None, BUCKETS % b"1_0.5": None},
    {BUCKETS % b"inff": None, BUCKETS % b"nanf": None, BUCKETS % b"1.5ff": None},
    {b"optimization { gather_kernel_buffer_threshold: -0 }": None},
    {b"optimization { eager_batching: 01 }": {"optimization": {"eager_batching": True}}, b"response_cache { enable: 0x0 }": {"response_cache": {}}},
    {b"input { data_type: 07 }": {"input": [{"data_type": 7}]}},
    {rb'name: "\q"': None, rb'name: "\8"': None, rb'name: "\N{SPACE}"': None, rb'name: "\X41"': None},
    {rb'name: "\?"': {"name": "?"}},
    {rb'name: "\400"': {"name": "\0"}, rb'name: "\501"': {"name": "A"}},
    {rb'name: "\u005cn"': {"name": "\\n"}},
    {rb'name: "\ud83d\ude00"': {"name": "\U0001f600"}, rb'name: "\U00110000"': {"name": r"\U00110000"}},
    {rb'name: "a\xffb"': {"name": "a\ufffdb"}, b'name: "a\xffb"': {"name": "a\ufffdb"}, rb'name: "\ud800"': {"name": "\ufffd" * 3}},
    {b'# caf\xe9\nname: "x"': {"name": "x"}},
    {b'name: "a\0b"': None, b'# a\0b\nname: "x"': None},
    {b'name:\xc2\xa0"x"': None, b'name:\x1c"x"': None, b'name:\xe2\x80\x83"x"': None},
    {b'parameters { key: "" key: "a" }': None, b'metric_tags { key: "a" value: "" value: "b" }': None},
    {
        b"sequence_batching { direct { minimum_slot_utilization: 3.4028235677973366e+38 } }": {
            "sequence_batching": {"direct": {"minimum_slot_utilization": float.fromhex("0x1.fffffep+127")}}
        }
    },
    {b'name: "x"' + b" " * MAX_BYTES: None},
    {b"input { " * 60 + b"}" * 60: None},
]


@pytest.mark.parametrize(("row", "texts"), list(zip(DIFFERENCES, DIFFERENT, strict=True)), ids=[row[0] for row in DIFFERENCES])
def test_where_python_and_c_plus_plus_differ_the_reader_goes_with_the_latter(row, texts):
    for text, expected in texts.items():
        read = read_config(text, "config.pbtxt")
        assert read.ok is row[1] is (expected is not None), text[:60]
        assert bool(read.diagnostics) is not read.ok
        if expected is not None:
            assert read.config == ModelConfig(**expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Python, about the unknown escapes that its parser lets through
@pytest.mark.parametrize("texts", DIFFERENT[:-2], ids=[row[0] for row in DIFFERENCES[:-2]])
def test_the_differences_are_differences(texts):
    """Each text is one that Python's parser judges or reads otherwise: a row that is none must go."""
    for text in texts:
        read, theirs = read_config(text, "config.pbtxt"), config_texts.python_accepts(text)
        assert read.ok is not (theirs is not None) or read.config != theirs, text


@pytest.mark.parametrize("text", config_texts.GOOD, ids=config_texts.STYLES)
def test_good_configs_are_read_as_protobuf_reads_them(text):
    read = read_config(text.encode(), "config.pbtxt")
    assert read.ok, read.diagnostics
    assert read.diagnostics == ()
    assert read.fixes == ()
    python_text = text.replace("- 1", "-1").replace("0x10", "16")
    assert read.config == text_format.Parse(python_text, ModelConfig())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \t\v\f\r # only a comment",
        "dynamic_batching {}",
        "dynamic_batching < >",
        "dynamic_batching: { }",
        "input: [ ]",
        "input []",
        "input { dims: [] }",
        "input { dims: [1] dims: 2 dims: [3, 4] }",
        "input { name: 'a' }; input { name: 'b' }, input { name: 'c' }",
        "max_batch_size: 0 max_batch_size: 8",
        "name: '' name: 'x'",
        "max_batch_size: -2147483648",
        "max_batch_size: 0XfF",
        "input { dims: -9223372036854775808 }",
        "input { data_type: 99 }",
        "input { data_type: -1 }",
        "optimization { eager_batching: t }",
        "optimization { eager_batching: False }",
        "optimization { eager_batching: 1 }",
        "sequence_batching { direct { minimum_slot_utilization: -inf } }",
        "sequence_batching { direct { minimum_slot_utilization: .5F } }",
        "sequence_batching { direct { minimum_slot_utilization: 1.e-3 } }",
        "sequence_batching { direct { minimum_slot_utilization: 1e400 } }",
        "sequence_batching { direct { minimum_slot_utilization: 18446744073709551617 } }",
        "name: 'a' \"b\" # comment\n 'c'",
        r"name: '\a\b\f\n\r\t\v\\\'\"\101\x41\u00e9\U0001F600'",
        "parameters { }",
        "parameters { value { string_value: 'v' } }",
        "parameters { key: 'a' } parameters { key: 'a' value { string_value: 'last' } }",
        "metric_tags { key: 'a' } metric_tags { value: 'b' }",
        "dynamic_batching { priority_queue_policy { key: 18446744073709551615 value { max_queue_size: 4294967295 } } }",
        "name:'a'platform:'b'max_batch_size:1 input{dims:1}output<>",
        'name: "${not_a_template_here} // nor a comment /* \u201cquotes\u201d <<<<<<<"',
    ],
)
def test_accepted_forms(text):
    read = read_config(text.encode(), "config.pbtxt")
    assert read.ok, read.diagnostics
    assert read.config == text_format.Parse(text, ModelConfig())


def test_not_a_number_is_read():
    read = read_config(BUCKETS % b"[ nan, -NaN ]", "config.pbtxt")
    assert read.ok
    assert all(math.isnan(bucket) for bucket in read.config.model_metrics.metric_control[0].histogram_options.buckets)


@settings(max_examples=250, deadline=None)
@given(st.one_of(config_texts.mutants(), config_texts.soups(), st.binary(max_size=60)))
def test_verdict_and_value_are_those_of_protobuf(data):
    read = read_config(data, "config.pbtxt")
    assert bool(read.diagnostics) is not read.ok
    for path, _ in config_texts.marks(config_texts.CLASSIC):
        assert read.locate(path).line >= 1
    if not config_texts.may_differ(data):
        theirs = config_texts.python_accepts(data)
        assert read.ok is (theirs is not None), read.diagnostics
        assert theirs is None or read.config.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


@settings(max_examples=150, deadline=None)
@given(st.one_of(config_texts.mutants(), config_texts.soups()))
def test_where_every_mistake_can_be_fixed_the_result_is_what_was_understood(data):
    read = read_config(data, "config.pbtxt")
    mended = read_config(apply_fixes(data, read.fixes), "config.pbtxt")
    if read.fixes and len(read.fixes) == len(read.diagnostics):
        assert mended.ok, (data, read.fixes, mended.diagnostics)
        assert mended.config.SerializeToString(deterministic=True) == read.config.SerializeToString(deterministic=True)


def test_much_of_what_is_compared_is_accepted():
    """The comparison above is not about refusals only: most good configs with one line doubled or left out are comparable."""
    compared = accepted = 0
    for text in config_texts.GOOD[::2]:
        lines = text.splitlines(keepends=True)
        for index in range(len(lines)):
            for changed in (lines[:index] + lines[index + 1 :], lines[:index] + [lines[index]] * 2 + lines[index + 1 :]):
                data = "".join(changed).encode()
                if config_texts.may_differ(data):
                    continue
                theirs = config_texts.python_accepts(data)
                read = read_config(data, "config.pbtxt")
                assert read.ok is (theirs is not None), (data, read.diagnostics)
                assert theirs is None or read.config == theirs
                compared += 1
                accepted += read.ok
    assert compared > 60
    assert accepted > 20


HOSTILE = {
    "fields": b"a: 1 ",
    "open braces": b"input {",
    "closing braces": b"}",
    "brackets": b"[",
    "quotes": b'"\n',
    "one line of quotes": b'"a"b ',
    "comments": b"/*/",
    "templates": b"{# ",
    "typographic quotes": "\u00ab".encode(),
    "blanks": b"\xc2\xa0",
    "digits": b"9",
    "numbers": b"1 ",
    "entries": b'parameters{key:"a"}',
    "doubles": b"name:'a'\n",
    "NUL": b"\0",
    "spaces in an open string": b'"' + b" " * 1000,
    "letters in an open string": b'"' + b"a" * 1000,
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_does_not_explode(piece):
    """Texts of many kinds take time in proportion to their length: five times as much text must not take twenty-five times as long.

    The best of three: a collection of all that a large test process holds may fall into any one of them.
    """

    def seconds(length):
        start = time.process_time()
        read = read_config(piece * (length // len(piece)), "config.pbtxt")
        assert len(read.diagnostics) <= MAX_FINDINGS + 1
        return time.process_time() - start

    assert min(seconds(100_000) for _ in range(3)) < 0.1 + 15 * max(seconds(20_000), 0.004)


def test_a_file_that_is_too_large_is_not_read_and_not_called_wrong():
    read = read_config(b"x" * (100 * MAX_BYTES), "m/config.pbtxt")
    assert not read.ok
    [finding] = read.diagnostics
    assert (finding.code, finding.severity) == ("TG076", Severity.WARNING)
    assert "50,000,000 bytes" in finding.message


def test_more_mistakes_than_anyone_reads_are_cut_off():
    read = read_config(b"x: 1\n" * 1000, "config.pbtxt")
    assert len(read.diagnostics) == MAX_FINDINGS + 1
    assert read.diagnostics[-1].code == "TG219"


def test_what_quotes_the_file_can_be_printed():
    read = read_config(b'parameters { key: "a" value: "\xff" } \xff\xfe: 1', "config.pbtxt")
    for finding in read.diagnostics:
        f"{finding} {finding.hint} {finding.location.text}".encode()


def test_a_broken_file_still_tells_what_can_be_understood():
    text = 'name: "m"\nmax_batchsize: 8\ninputs [ { name: "x" type: TYPE_FLOAT32 dim: [ 4 ] } ]\npreferred_batch_size: 4\n'
    read = read_config(text.encode(), "config.pbtxt")
    assert read.config == ModelConfig(
        name="m", max_batch_size=8, input=[{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}], dynamic_batching={"preferred_batch_size": [4]}
    )


def test_utf_16_is_named_and_read():
    read = read_config('name: "m"\n'.encode("utf-16"), "config.pbtxt")
    assert [finding.code for finding in read.diagnostics] == ["TG200"]
    assert "UTF-16" in read.diagnostics[0].message
    assert read.config.name == "m"
