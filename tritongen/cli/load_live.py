"""What people see while a load test runs: what happens to workers, and on a terminal a line that is written over several times a second."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tritongen.load.plan import LoadPlan
    from tritongen.load.recorder import Recorder
    from tritongen.load.run import Progress

_CLEAR = "\r\x1b[K"
_SPAN_S = 2.0


class LiveLine:
    """The line of one run. Rate and p99 are those of the last two seconds or so; errors are those of the whole run, what was never sent among them."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._terminal = sys.stderr.isatty()
        self._drawn = False
        self._span: Recorder | None = None
        self._span_began_s = 0.0
        self._figures = ""

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._drawn:
            click.echo(err=True)

    def show(self, progress: Progress) -> None:
        """Take what is new."""
        for text in progress.news:
            click.echo(f"{_CLEAR if self._drawn else ''}{text}", err=True)
        if self._terminal:
            self.measure(progress)
            click.echo(f"{_CLEAR}{self.text(progress)}", nl=False, err=True)
            self._drawn = True

    def text(self, progress: Progress) -> str:
        """The line."""
        elapsed_s, begin_s, length_s = progress.elapsed_s, self._plan.begin_s, self._plan.length_s
        if elapsed_s < 0:
            return "starting"
        if elapsed_s < begin_s:
            return f"warmup {elapsed_s:5.1f} of {begin_s:g} s   under way {progress.under_way:4}"
        errors = progress.recorder.errors.count + progress.recorder.missed_in()
        clock = f"{min(elapsed_s, length_s) - begin_s:6.1f} of {length_s - begin_s:g} s"
        return f"{clock}{self._figures}   under way {progress.under_way:4}   errors {errors}"

    def measure(self, progress: Progress) -> None:
        """Take what is new into the figures; they are those of the last span that was over."""
        from tritongen.load.model_result import measure
        from tritongen.load.recorder import Recorder

        if self._span is None or progress.elapsed_s < self._plan.begin_s:
            self._span, self._span_began_s = Recorder(), max(progress.elapsed_s, self._plan.begin_s)
        self._span.merge(progress.latest)
        if (seconds := progress.elapsed_s - self._span_began_s) < _SPAN_S:
            return
        span = self._span
        good = span.total(key for key in span.histograms if key.outcome == "ok")
        p99 = f"{measure(good, 'p99'):8.2f} ms" if good.count else "       -   "
        self._figures = f"   {sum(span.sent.values()) / seconds:8.1f}/s   p99 {p99}"
        self._span, self._span_began_s = Recorder(), progress.elapsed_s
