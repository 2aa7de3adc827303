"""Protobuf text as tokens and as a tree, without knowing any field."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritongen.sources.pbtxt import parse_fields
from tritongen.sources.pbtxt_brackets import MAX_DEPTH
from tritongen.sources.pbtxt_literals import floating, integer, string_content
from tritongen.sources.pbtxt_tokens import MAX_ODD, tokenize
from tritongen.sources.pbtxt_tree import FaultKind, Items, Message, Scalar


def kinds(text):
    return [(token.kind, text[token.start : token.end]) for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1 # b: 2\nc", [("id", "a"), (":", ":"), ("int", "1"), ("id", "c")]),
        ("0 00 017 0x1F 0XaB", [("int", "0"), ("int", "00"), ("int", "017"), ("int", "0x1F"), ("int", "0XaB")]),
        ("1. .5 1e5 1E-5 0f 1.5F 1e+5f", [("float", part) for part in ("1.", ".5", "1e5", "1E-5", "0f", "1.5F", "1e+5f")]),
        ("08 0x 1k 1_0 1.2.3 1e 0x1.5", [("number", part) for part in ("08", "0x", "1k", "1_0", "1.2.3", "1e", "0x1.5")]),
        (r"""'a"b' "a'b" 'a\'b' "" """, [("str", part) for part in ("'a\"b'", '"a\'b"', r"'a\'b'", '""')]),
        ("-1-x", [("-", "-"), ("int", "1"), ("-", "-"), ("id", "x")]),
        ('"open\nx', [("open", '"open'), ("id", "x")]),
        ("${a} {{ b }} $c %d% {% e %} <f> @g@", [("template", part) for part in ("${a}", "{{ b }}", "$c", "%d%", "{% e %}", "<f>", "@g@")]),
        ("a<b:1>", [("id", "a"), ("<", "<"), ("id", "b"), (":", ":"), ("int", "1"), (">", ">")]),
        ("a{{}}", [("id", "a"), ("template", "{{}}")]),
        ("// a\n/* b\n */ c", [("comment", "// a"), ("comment", "/* b\n */"), ("id", "c")]),
        ("=======\na=======", [("marker", "======="), ("id", "a"), *[("=", "=")] * 7]),
        ("\u201ca\u201d", [("curly", "\u201ca\u201d")]),
        ("\xa0\0", [("other", "\xa0"), ("other", "\0")]),
    ],
)
def test_tokens(text, expected):
    assert kinds(text) == expected


def test_a_text_of_strange_characters_is_cut_off():
    tokens = tokenize("\u00e9" * 100_000)
    assert len(tokens) == MAX_ODD + 2
    assert tokens[-1].kind == "end"


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("12", 12), ("010", 8), ("0x1f", 31), ("0XFF", 255), ("00", 0)])
def test_whole_numbers(text, value):
    assert integer(text) == value


def test_a_number_of_thousands_of_digits_is_only_large():
    assert integer("9" * 100_000) > 2**64


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("1.", 1.0), (".5f", 0.5), ("1e3F", 1000.0), ("1e999", float("inf"))])
def test_numbers_with_a_point(text, value):
    assert floating(text) == value


@pytest.mark.parametrize(
    ("text", "content", "invalid"),
    [
        ("a\u00e9", b"a\xc3\xa9", []),
        (r"\n\t\r\a\b\f\v\\\'\"\?", b"\n\t\r\a\b\f\v\\'\"?", []),
        (r"\x41\x4g\101\7z", b"A\x04gA\x07z", []),
        (r"\u00e9\U0001F600", "\u00e9\U0001f600".encode(), []),
        (r"\ud83d\ude00", "\U0001f600".encode(), []),
        (r"\ud83d-\ude00", b"\xed\xa0\xbd-\xed\xb8\x80", []),
        (r"\q\x\u12", rb"\q\x\u12", [0, 2, 4]),
        ("\udcff", b"\xff", []),
    ],
)
def test_strings(text, content, invalid):
    assert string_content(text) == (content, invalid)


def test_a_tree_holds_what_the_text_says_and_where():
    text = "a { b: [ 1, -2 ] c < d: \"x\" 'y' > }"
    parsed = parse_fields(text)
    assert parsed.faults == ()
    [field] = parsed.fields
    assert isinstance(field.value, Message)
    assert (text[field.start : field.end], text[field.value.start : field.value.end]) == ("a", text[2:])
    first, second = field.value.fields
    assert isinstance(first.value, Items)
    assert [(item.content, item.negative) for item in first.value.items] == [("1", False), ("2", True)]
    assert text[first.value.start : first.value.end] == "[ 1, -2 ]"
    string = second.value.fields[0].value
    assert isinstance(string, Scalar)
    assert [text[start:end] for start, end in string.parts] == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("a {\n  b: 1\nc {\n  d: 1\n}\n", 2),
        ("a [\n  {\n    b: 1\n  }\nc { }\n", 2),
        ("a {\n  b {\n    c: 1\n  d: 1\n}\n", 8),
        ("a { b { c: 1 }", 2),
        ("a: [ { b: 1, c: [ 2 } ]", 16),
    ],
)
def test_a_bracket_that_is_never_closed_is_named_where_it_opens(text, opened):
    [fault] = parse_fields(text).faults
    assert (fault.kind, fault.start) == (FaultKind.BRACKET, opened)


@pytest.mark.parametrize("opener", ["a {", "a <", "a: [", "[", "{", "a { b [ {"])
def test_nesting_has_an_end(opener):
    parsed = parse_fields(opener * 5_000)
    assert 1 <= len(parsed.faults) <= 300
    parsed = parse_fields("a {" * MAX_DEPTH + "}" * MAX_DEPTH)
    assert parsed.faults == ()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from([*"ab{}[]<>:,;-=+\"' \n#/\\.1$%(\0\u201c\u201d\xa0"]), max_size=40))
def test_any_text_gives_a_tree(text):
    parsed = parse_fields(text)
    assert all(0 <= fault.start <= len(text) for fault in parsed.faults)
    assert all(0 <= edit.start <= edit.end <= len(text) for fault in parsed.faults for edit in fault.edits)
    assert list(parsed.faults) == sorted(parsed.faults, key=lambda fault: fault.start)
