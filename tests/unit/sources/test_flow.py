"""Values as YAML on one line, read back by a YAML reader."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tritongen.sources.flow import yaml_flow, yaml_scalar


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
@example("\x7f")
@example("a\x85b\u2028c\ufeff")
@example("\ufffe\U0001f600")
@example("{{ $x }}: [a]\n- 'b' \"c\" \\ # d")
@example("0.1%")
def test_any_text_is_read_back_as_it_was(text):
    assert YAML(typ="safe", pure=True).load(f"key: {yaml_scalar(text)}\n") == {"key": text}


@pytest.mark.parametrize(
    ("value", "text"),
    [("20ms", "20ms"), ("0.1%", "0.1%"), ("100%", "100%"), ("on", '"on"'), ("1.5", '"1.5"'), ({"a": [1, True, None]}, "{a: [1, true, null]}")],
)
def test_what_is_plain_stays_plain(value, text):
    assert yaml_flow(value) == text
