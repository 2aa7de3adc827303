"""Charts as SVG text: scales, lines, a stacked bar and columns. Pure; knows nothing of load tests. Colours come from the page's style sheet, by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 18, 44
_POINTS_WITH_WORDS = 150
"""Up to so many points of a line say their values under the pointer; more would be too close to be met."""
_DEEPEST = 0.45
"""Opacity of the deepest shade, on which lines and words are still read."""
_LETTER_WIDTH, _LINE_HEIGHT = 7.5, 14
"""Of a label, at most: its letters are 12 high."""
_WIDE_ENOUGH = 0.08
"""A part of a bar that is narrower than this part of it has no room for its name."""

Tick = tuple[float, str]


@dataclass(frozen=True)
class Scale:
    """A mapping of values to positions from 0 to 1, with the ticks that stand on it, as (position, label)."""

    title: str
    position: Callable[[float], float]
    ticks: Sequence[Tick]


@dataclass(frozen=True)
class Series:
    """A line. A point whose second value is None interrupts it. `marked` shows each point; `labels` are words at the points, in their order."""

    name: str
    points: Sequence[tuple[float, float | None]]
    marked: bool = False
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Shade:
    """From one value to another: `depth` from 0, which is not seen, to 1; `words` under the pointer."""

    begin: float
    end: float
    depth: float
    words: str


def linear(title: str, low: float, high: float, *, exact: bool = False) -> Scale:
    """An even scale, from exactly `low`, up to a round number at or above `high`, or up to `high` where it is to be `exact`."""
    step = _round_step((high - low) / 5) if high > low else 1.0
    top = high if exact and high > low else max(math.ceil(high / step - 1e-9) * step, low + step)
    ticks = []
    value = math.ceil(low / step - 1e-9) * step
    while value <= top + step * 1e-6:
        ticks.append(((value - low) / (top - low), number(value)))
        value += step
    return Scale(title, lambda value: (value - low) / (top - low), ticks)


def logarithmic(title: str, low: float, high: float) -> Scale:
    """A scale on which equal factors are equal lengths, between round numbers around two values above 0."""
    if not 0 < low <= high:
        raise ValueError(f"a logarithmic scale lies above 0: {low} to {high}")
    steps = [factor * 10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for factor in (1, 2, 5)]
    begin = max(step for step in steps if step <= low * (1 + 1e-9))
    end = min(step for step in steps if step >= high * (1 - 1e-9) and step > begin)
    span = math.log10(end / begin)
    shown = [step for step in steps if begin <= step <= end]
    if len(shown) > 8:
        shown = [step for step in shown if math.isclose(math.log10(step), round(math.log10(step)), abs_tol=1e-9)]
    return Scale(title, lambda value: math.log10(value / begin) / span, [(math.log10(step / begin) / span, number(step)) for step in shown])


def tail(title: str, nines: float) -> Scale:
    """The percentile scale of HdrHistogram's plots: 90, 99 and 99.9 % are evenly spaced, up to `nines` of them, so that the tail has room."""
    end = max(nines, 1.0)
    named = [(0.0, "0 %"), (math.log10(2), "50 %")] + [(float(count), f"{100 - 10.0 ** (2 - count):.10g} %") for count in range(1, math.floor(end) + 1)]

    def position(percentile: float) -> float:
        return min(-math.log10(1 - percentile / 100) / end, 1.0) if percentile < 100 else 1.0

    return Scale(title, position, [(place / end, label) for place, label in named])


def _round_step(rough: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... (and their fractions) that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def number(value: float) -> str:
    """A number as people read it: no exponent, thousands parted, four significant digits below 1000."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.4g}'):.10f}".rstrip("0").rstrip(".")


def line_chart(
    title: str,
    x: Scale,
    y: Scale,
    series: Sequence[Series],
    *,
    limits: Sequence[tuple[float, str]] = (),
    parts: Sequence[Tick] = (),
    shades: Sequence[Shade] = (),
) -> Markup:
    """Lines over a grid.

    Args:
        title: for those who cannot see it.
        x: the scale across.
        y: the scale upward.
        series: the lines; the first has the class `s0`, the next `s1`, and so on.
        limits: values of y with a level line and a word.
        parts: values of x with an upright line and a word.
        shades: spans of x that are shaded.
    """
    body = [*_shaded(x, shades), *_grid(x, y)]
    for value, word in parts:
        place = _x(x.position(value))
        body.append(f'<line class="part" x1="{place}" x2="{place}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        body.append(f'<text class="part" x="{place + 3:.1f}" y="{_TOP + 9}">{escape(word)}</text>')
    for value, word in limits:
        level = y.position(value)
        if 0 <= level <= 1:
            body.append(f'<line class="limit" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(level)}" y2="{_y(level)}"/>')
            body.append(f'<text class="limit" x="{_LEFT + 4}" y="{_y(level) - 4:.1f}">{escape(word)}</text>')
    for index, line in enumerate(series):
        body += _line(index, line, x, y)
    return _svg(title, body, HEIGHT)


def _shaded(x: Scale, shades: Sequence[Shade]) -> Iterator[str]:
    for shade in shades:
        left, right = (_x(min(max(x.position(value), 0.0), 1.0)) for value in (shade.begin, shade.end))
        place = f'x="{left}" y="{_TOP}" width="{right - left:.1f}" height="{HEIGHT - _TOP - _BOTTOM}"'
        yield f'<rect class="shade" {place} opacity="{shade.depth * _DEEPEST:.3f}"><title>{escape(shade.words)}</title></rect>'


def _grid(x: Scale, y: Scale) -> Iterator[str]:
    for position, label in y.ticks:
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(position)}" y2="{_y(position)}"/>'
        yield f'<text x="{_LEFT - 6}" y="{_y(position) + 4:.1f}" text-anchor="end">{escape(label)}</text>'
    for position, label in x.ticks:
        yield f'<line class="grid" x1="{_x(position)}" x2="{_x(position)}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
        yield f'<text x="{_x(position)}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(label)}</text>'
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    yield f'<text class="axis" x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.title)}</text>'
    yield f'<text class="axis" transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'


def _line(index: int, line: Series, x: Scale, y: Scale) -> Iterator[str]:
    drawn: list[str] = []
    placed: list[tuple[float, float, float, float]] = []
    joined = False
    for across, up in line.points:
        if up is None:
            joined = False
            continue
        left, top = _x(x.position(across)), _y(min(max(y.position(up), 0.0), 1.0))
        drawn.append(f"{'L' if joined else 'M'}{left} {top}")
        placed.append((across, up, left, top))
        joined = True
    yield f'<path class="s{index}" d="{" ".join(drawn)}"/>'
    # A point between two gaps has no length, and would not be seen.
    radius = 3.5 if line.marked else 1.5 if len(line.points) <= _POINTS_WITH_WORDS else 0
    for place, (across, up, left, top) in enumerate(placed):
        if radius:
            label = f" ({line.labels[place]})" if place < len(line.labels) else ""
            words = escape(f"{line.name}: {number(up)} at {number(across)}{label}")
            yield f'<circle class="s{index}" cx="{left}" cy="{top}" r="{radius}"><title>{words}</title></circle>'
    for left, top, word in _readable([(left, top, word) for (_, _, left, top), word in zip(placed, line.labels, strict=False)]):
        anchor = "end" if left > WIDTH - 4 * _RIGHT else "middle"
        yield f'<text class="label" x="{left}" y="{top - 8:.1f}" text-anchor="{anchor}">{escape(word)}</text>'


def _readable(labels: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """The labels, as (left, top, word), without those that would lie on one before them; the pointer says these at their points."""
    kept: list[tuple[float, float, str]] = []
    for left, top, word in labels:
        if not any(abs(left - x) < (len(word) + len(other)) * _LETTER_WIDTH / 2 and abs(top - y) < _LINE_HEIGHT for x, y, other in kept):
            kept.append((left, top, word))
    return kept


def stacked_bar(title: str, parts: Sequence[tuple[str, float]], unit: str) -> Markup:
    """One bar whose parts are as long as their values; the first has the class `s0`, the next `s1`, and so on."""
    total = sum(value for _, value in parts)
    body, left = [], 0.0
    for index, (name, value) in enumerate(parts):
        width = WIDTH * value / total if total else 0.0
        words = escape(f"{name}: {value:.2f} {unit}")
        body.append(f'<rect class="s{index}" x="{left:.1f}" y="4" width="{width:.1f}" height="40"><title>{words}</title></rect>')
        if width >= WIDTH * _WIDE_ENOUGH:
            body.append(f'<text class="inside" x="{left + width / 2:.1f}" y="29" text-anchor="middle">{value:.2f}</text>')
        left += width
    return _svg(title, body, 48)


def columns(title: str, values: Sequence[tuple[str, float]], x_title: str, y_title: str) -> Markup:
    """A column for each value, on an even scale from 0."""
    y = linear(y_title, 0, max((value for _, value in values), default=1.0))
    slot = 1 / max(len(values), 1)
    every = math.ceil(len(values) / 24)
    x = Scale(x_title, lambda place: (place + 0.5) * slot, [((place + 0.5) * slot, name) for place, (name, _) in enumerate(values) if place % every == 0])
    width = min((WIDTH - _LEFT - _RIGHT) * slot * 0.7, 60)
    body = [*_grid(Scale(x.title, x.position, ()), y)]
    body += [f'<text x="{_x(position)}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(label)}</text>' for position, label in x.ticks]
    for place, (name, value) in enumerate(values):
        top = _y(y.position(value))
        words = escape(f"{name}: {number(value)}")
        left, height = _x(x.position(place)) - width / 2, HEIGHT - _BOTTOM - top
        body.append(f'<rect class="s0" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height:.1f}"><title>{words}</title></rect>')
    return _svg(title, body, HEIGHT)


def _x(position: float) -> float:
    return round(_LEFT + position * (WIDTH - _LEFT - _RIGHT), 1)


def _y(position: float) -> float:
    return round(HEIGHT - _BOTTOM - position * (HEIGHT - _TOP - _BOTTOM), 1)


def _svg(title: str, body: Sequence[str], height: int) -> Markup:
    """The whole picture. Everything in `body` is made of numbers and escaped words."""
    inside = "\n".join(body)
    return Markup(f'<svg viewBox="0 0 {WIDTH} {height}" role="img"><title>{escape(title)}</title>\n{inside}\n</svg>')  # noqa: S704 - escaped above
