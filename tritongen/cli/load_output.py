"""Where `tritongen load` writes what it found: the terminal, a JSON file, an HTML file; with an earlier result beside it."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tritongen.diagnostics import Diagnostic
    from tritongen.load.compare import Comparison, Earlier
    from tritongen.load.findmax import Found
    from tritongen.load.result import LoadResult


_TRIED_BYTES = 4096


@dataclass(frozen=True)
class LoadOutput:
    """What is written where.

    Attributes:
        form: what is printed: `text` or `json`.
        output: the JSON file.
        html: the HTML file.
        compare: the JSON file of the earlier result.
        earlier: what it holds.
    """

    form: str
    output: Path | None = None
    html: Path | None = None
    compare: Path | None = None
    earlier: Earlier | None = None

    @classmethod
    def prepare(cls, form: str, output: Path | None, html: Path | None, compare: Path | None) -> LoadOutput:
        """The same, with the earlier result read: whatever is wrong with the files is said before the run, not after it.

        Raises InputError: TG421 for files that cannot be written, and what `read_earlier` raises.
        """
        from tritongen.errors import InputError

        problems = [problem for path in (output, html) if path is not None for problem in _in_the_way(path)]
        if output is not None and html is not None and output.absolute() == html.absolute():
            problems.append(_unwritable(output, "it is given for the JSON and for the HTML", "give them files of their own"))
        earlier = None
        if compare is not None:
            from tritongen.load.compare import read_earlier

            try:
                earlier = read_earlier(compare)
            except InputError as error:
                raise InputError([*problems, *error.diagnostics]) from error
        if problems:
            raise InputError(problems)
        return cls(form, output, html, compare, earlier)

    def result(self, result: LoadResult) -> None:
        """Print and write a run. Raises InputError (TG421) where a file cannot be written after all, when everything was printed."""
        from tritongen.report.load import format_load

        self._deliver(result.to_json, lambda: format_load(result), result, None)

    def found(self, found: Found) -> None:
        """The same for a search; the HTML file is about the best run, or the last where none was kept."""
        from tritongen.report.load_search import format_found, found_json

        self._deliver(lambda: found_json(found), lambda: format_found(found), found.best or found.probes[-1].result, found)

    def _deliver(self, as_json: Callable[[], str], as_text: Callable[[], str], result: LoadResult, found: Found | None) -> None:
        from tritongen.errors import InputError
        from tritongen.patience import Patience
        from tritongen.report.load import format_comparison
        from tritongen.report.text import printable

        comparison = self._comparison(result)
        with Patience():  # whatever is pressed: what was measured is kept
            data = as_json()
            problems = _written(self._texts(data, result, comparison, found))
        click.echo(data if self.form == "json" else as_text())
        if comparison is not None:
            click.echo(f"\n{format_comparison(comparison)}", err=self.form == "json")
        for note in result.remarks if self.form == "json" or (found is not None and found.best is None) else ():
            click.echo(f"note: {printable(note)}", err=True)  # a report in words has said it
        if problems:
            raise InputError(problems)

    def _texts(self, data: str, result: LoadResult, comparison: Comparison | None, found: Found | None) -> list[tuple[Path, str]]:
        """What is to be written where."""
        texts: list[tuple[Path, str]] = []
        if self.output is not None:
            texts.append((self.output, data + "\n"))
        if self.html is not None:
            from tritongen.report.load_html import load_page

            texts.append((self.html, load_page(result, comparison, found)))
        return texts

    def _comparison(self, result: LoadResult) -> Comparison | None:
        from tritongen.load.compare import compare

        return compare(self.earlier, self.compare, result) if self.earlier is not None and self.compare is not None else None


def _in_the_way(path: Path) -> list[Diagnostic]:
    """Why a file cannot be written, as far as it can be seen without writing it."""
    if path.is_dir():
        return [_unwritable(path, "it is a folder", "give the path of a file")]
    if not path.parent.is_dir():
        return [_unwritable(path, f"there is no folder {path.parent}", f"make it: mkdir -p {path.parent}")]
    try:
        if path.exists():
            with path.open("ab"):
                return []
        # Only a file that was made shows that one can be: on a disk that is read-only or full, permissions say nothing.
        with tempfile.NamedTemporaryFile(prefix=f".{path.name[:100]}.", dir=path.parent) as tried:
            tried.write(bytes(_TRIED_BYTES))
    except OSError as error:
        return [_unwritable(path, str(error.strerror), "choose another file, or allow this user to write there")]
    return []


def _unwritable(path: Path, reason: str, hint: str) -> Diagnostic:
    from tritongen.diagnostics import Diagnostic, Location

    return Diagnostic("TG421", f"the result cannot be written: {reason}", Location(str(path)), hint=hint)


def _put(path: Path, text: str) -> None:
    """One file, whole or not at all; what is no plain file, such as a pipe, is written into. Raises OSError."""
    from tritongen.repository.writing import NEW_MODE, write_whole

    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
    else:
        write_whole(target, text.encode("utf-8"), mode=stat.S_IMODE(target.stat().st_mode) if target.exists() else NEW_MODE)


def _written(texts: list[tuple[Path, str]]) -> list[Diagnostic]:
    """Write every file that can be written, and say which could not."""
    problems = []
    for path, text in texts:
        try:
            _put(path, text)
        except OSError as error:
            problems.append(_unwritable(path, str(error.strerror), "choose another file"))
    return problems
