"""Charts are drawn where the values are."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritongen.report.charts import HEIGHT, WIDTH, Series, Shade, columns, line_chart, linear, logarithmic, number, stacked_bar, tail


def parsed(picture):
    return ET.fromstring(str(picture))


def within(picture):
    """Whether every coordinate of lines, circles and boxes lies in the picture."""
    for element in parsed(picture).iter():
        for name, limit in (("x1", WIDTH), ("x2", WIDTH), ("cx", WIDTH), ("x", WIDTH), ("y1", HEIGHT), ("y2", HEIGHT), ("cy", HEIGHT), ("y", HEIGHT)):
            if name in element.attrib and not -1 <= float(element.attrib[name]) <= limit + 1:
                return False
    return True


@settings(deadline=None)
@given(st.floats(0, 1e6), st.floats(1e-6, 1e6), st.booleans())
def test_an_even_scale_holds_its_values(low, width, exact):
    high = low + width
    scale = linear("t", low, high, exact=exact)
    assert scale.position(low) == 0
    assert 0 < scale.position(high) <= 1 + 1e-9
    assert scale.position(high) == pytest.approx(1) or not exact or high == low
    assert 1 <= len(scale.ticks) <= 12
    assert all(-1e-6 <= position <= 1 + 1e-6 for position, _ in scale.ticks)


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(1, 1e6))
def test_a_logarithmic_scale_holds_its_values_between_round_numbers(low, factor):
    high = low * factor
    scale = logarithmic("t", low, high)
    assert -1e-6 <= scale.position(low) <= scale.position(high) <= 1 + 1e-6
    assert len(scale.ticks) >= 1
    for position, label in scale.ticks:
        assert scale.position(float(label.replace(",", ""))) == pytest.approx(position, abs=1e-3)


def test_scales_have_the_ticks_that_people_expect():
    assert [label for _, label in linear("t", 0, 47).ticks] == ["0", "10", "20", "30", "40", "50"]
    assert [label for _, label in logarithmic("t", 3, 900).ticks] == ["10", "100", "1,000"]
    assert [label for _, label in logarithmic("t", 3, 40).ticks] == ["2", "5", "10", "20", "50"]
    assert [label for _, label in linear("t", 0, 0).ticks] == ["0", "1"]


def test_a_logarithmic_scale_starts_above_0():
    with pytest.raises(ValueError, match="above 0"):
        logarithmic("t", 0, 1)


def test_nines_are_evenly_spaced():
    scale = tail("percentile", 4)
    assert [label for _, label in scale.ticks] == ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert [scale.position(value) for value in (0, 90, 99, 99.9, 99.99)] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert scale.position(100) == 1
    assert scale.position(50) == pytest.approx(math.log10(2) / 4)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.001, "0.001"), (1.5, "1.5"), (0.30000000000000004, "0.3"), (999.96, "1000"), (12_345.6, "12,346"), (1.2e10, "12,000,000,000")],
)
def test_numbers_are_plain(value, text):
    assert number(value) == text


def chart(points, **options):
    return line_chart("title", linear("across", 0, 10), linear("upward", 0, 100), [Series("s", points)], **options)


def test_a_line_goes_from_corner_to_corner():
    path = parsed(chart([(0, 0), (10, 100)])).find(".//path").get("d")
    assert path == "M64.0 216.0 L704.0 18.0"


def test_a_gap_is_a_gap_and_a_single_point_is_seen():
    picture = parsed(chart([(0, 1), (1, None), (2, 2), (3, None), (4, 3), (5, 4)]))
    assert re.sub(r"[0-9. ]", "", picture.find(".//path").get("d")) == "MMML"
    assert len(picture.findall(".//circle")) == 4


def test_points_say_their_values():
    (circle,) = parsed(chart([(5, 50)])).findall(".//circle")
    assert circle.find("title").text == "s: 50 at 5"


def test_limits_and_parts_are_drawn_where_they_can_be_seen():
    picture = chart([(0, 0)], limits=[(50, "SLO"), (5000, "far away")], parts=[(5, "second stage")])
    words = [element.text for element in parsed(picture).iter("text")]
    assert "SLO" in words
    assert "second stage" in words
    assert "far away" not in words
    assert within(picture)


def test_words_cannot_break_out():
    picture = str(chart([(0, 0)], parts=[(1, "<script>&\"'")]))
    assert "<script" not in picture
    assert parsed(picture) is not None


def test_a_bars_parts_are_as_long_as_their_values():
    widths = [float(box.get("width")) for box in parsed(stacked_bar("t", [("a", 1), ("b", 3), ("c", 0)], "ms")).findall("rect")]
    assert widths == pytest.approx([WIDTH / 4, WIDTH * 3 / 4, 0])
    words = [element.text for element in parsed(stacked_bar("t", [("a", 1), ("b", 99)], "ms")).findall("text")]
    assert words == ["99.00"]


@pytest.mark.parametrize("count", [1, 5, 100])
def test_columns_are_as_high_as_their_values_and_have_room(count):
    picture = columns("t", [(str(size), float(size + 1)) for size in range(count)], "size", "count")
    heights = [float(box.get("height")) for box in parsed(picture).findall("rect")]
    assert len(heights) == count
    assert heights[-1] / heights[0] == pytest.approx(count, rel=0.1)
    assert within(picture)
    assert len(list(parsed(picture).iter("text"))) < 40


def test_shades_lie_within_the_chart_and_are_as_deep_as_said():
    picture = parsed(chart([(0, 1.0), (10, 2.0)], shades=[Shade(2, 4, 1.0, "all <failed>"), Shade(8, 14, 0.5, "half")]))
    first, second = picture.findall("rect")
    assert first.find("title").text == "all <failed>"
    assert float(first.get("width")) == pytest.approx(float(second.get("width")), abs=0.2)
    assert float(second.get("x")) + float(second.get("width")) <= WIDTH
    assert float(first.get("opacity")) == pytest.approx(2 * float(second.get("opacity")), abs=0.002)


def test_labels_do_not_lie_on_one_another_and_the_pointer_says_all():
    points = [(10.0, 5.0), (10.1, 5.0), (60.0, 5.0), (10.1, 50.0)]
    line = Series("p99", points, marked=True, labels=["10/s", "10.1/s", "60/s", "again"])
    picture = str(line_chart("t", linear("x", 0, 100), logarithmic("y", 1, 100), [line]))
    assert re.findall(r'class="label"[^>]*>([^<]*)', picture) == ["10/s", "60/s", "again"]
    assert "p99: 5 at 10.1 (10.1/s)" in picture
