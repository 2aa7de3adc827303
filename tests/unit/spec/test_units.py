"""Durations and sizes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritongen.spec.units import DURATION_PATTERN, DURATION_UNITS, PERCENT_PATTERN, SIZE_PATTERN, SIZE_UNITS, parse_duration, parse_percent, parse_size


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("500us", 500), ("2ms", 2_000), ("1.5s", 1_500_000), ("1m", 60_000_000), ("1h", 3_600_000_000), ("0ms", 0), ("0.001ms", 1), ("2 ms", 2_000), ("1.0us", 1)],
)
def test_durations_are_whole_microseconds(text, microseconds):
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(("text", "size"), [("1B", 1), ("512MB", 512_000_000), ("4GiB", 4 * 2**30), ("1.5KiB", 1536), ("1kB", 1000), ("2TiB", 2**41)])
def test_sizes_are_whole_bytes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2, "no unit"),
        (0.5, "no unit"),
        (float("nan"), "no unit"),
        ("2", "no unit"),
        ("2 sec", "unknown unit 'sec'"),
        ("2MS", "unknown unit 'MS'"),
        ("-1ms", "negative"),
        ("+1ms", "sign"),
        ("nan", "not a duration"),
        ("1e3ms", "not a duration"),
        ("", "not a duration"),
        ("ms", "not a duration"),
        ("1ms\n", "not a duration"),
        ("\u0661ms", "not a duration"),
        ("0.5us", "whole number of microseconds"),
        ("1.0000001s", "whole number of microseconds"),
        ("9999999999h", "too large"),
        (True, "expected a duration"),
        (None, "expected a duration"),
        (["2ms"], "expected a duration"),
    ],
)
def test_what_is_no_duration_says_why(value, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_duration(value)


def test_a_bare_number_names_the_units():
    with pytest.raises(ValueError, match="us, ms, s, m, h"):
        parse_duration(2)
    with pytest.raises(ValueError, match="MiB, GiB, TiB"):
        parse_size(4)


def test_fraction_of_a_byte():
    with pytest.raises(ValueError, match="whole number of bytes"):
        parse_size("0.5B")


@given(st.integers(0, 10**15), st.sampled_from(sorted(DURATION_UNITS)))
def test_every_whole_quantity_is_exact(number, unit):
    exact = number * DURATION_UNITS[unit]
    if exact < 2**63:
        assert parse_duration(f"{number}{unit}") == exact


def reading(parse, text):
    """What a parser makes of a text: the value, or why there is none."""
    try:
        return parse(text)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(("parse", "pattern"), [(parse_duration, DURATION_PATTERN), (parse_size, SIZE_PATTERN)])
@given(text=st.one_of(st.text(max_size=12), st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,2})? ?[a-zA-Z]{0,3}", fullmatch=True)))
def test_the_schema_pattern_accepts_what_the_parser_can_read(parse, pattern, text):
    found = reading(parse, text)
    beyond_a_pattern = isinstance(found, str) and ("whole number" in found or "too large" in found)
    assert bool(re.fullmatch(pattern, text)) == (isinstance(found, int) or beyond_a_pattern)


def test_every_unit_is_in_its_pattern():
    assert all(re.search(SIZE_PATTERN, f"1{unit}") for unit in SIZE_UNITS)
    assert not re.search(SIZE_PATTERN, "1")


@pytest.mark.parametrize("text", ["0.1%", "99.999999%", "5 %", "05%", "0%", "0.0 %", "100%", "1", "1.1234567%", "%", "-1%", "1%\n"])
def test_the_pattern_of_a_percentage_is_what_is_read(text):
    if re.search(PERCENT_PATTERN.replace("$", r"\Z"), text):
        assert parse_percent(text) == pytest.approx(float(text.strip(" %")) / 100)
    else:
        with pytest.raises(ValueError, match=r"is not a percentage from 0% to below 100%"):
            parse_percent(text)
