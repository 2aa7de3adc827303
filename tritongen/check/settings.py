"""Settings of `tritongen check` in `tritongen.toml` ([check]) or `pyproject.toml` ([tool.tritongen.check]); the command line wins over them."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError
from tritongen.releases import RELEASES, Release, find_release
from tritongen.sources.text import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RELEASE_PATTERN = re.compile(r"\d\d\.(0[1-9]|1[0-2])")
_TABLES = {"tritongen.toml": ("check",), "pyproject.toml": ("tool", "tritongen", "check")}
_KEYS = ("release", "gpus", "disable-auto-complete-config", "select", "ignore", "strict")


@dataclass(frozen=True)
class Settings:
    """What a settings file or a command line says; None where it says nothing.

    Attributes:
        release: NVIDIA's release, `YY.MM`.
        gpus: number of GPUs of the server.
        disable_auto_complete: whether the server runs with --disable-auto-complete-config.
        select: codes to report; None reports all.
        ignore: codes not to report.
        strict: whether warnings fail the run.
    """

    release: str | None = None
    gpus: int | None = None
    disable_auto_complete: bool | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    strict: bool | None = None

    def over(self, other: Settings) -> Settings:
        """These settings, with `other` where they say nothing."""
        return Settings(*(mine if mine is not None else theirs for mine, theirs in zip(self._values, other._values, strict=True)))

    @property
    def _values(self) -> tuple[Any, ...]:
        return (self.release, self.gpus, self.disable_auto_complete, self.select, self.ignore, self.strict)


def find_settings(start: Path) -> Settings:
    """The settings of the nearest folder, from `start` upwards, that has some; in one folder tritongen.toml comes before pyproject.toml.

    Raises InputError (TG073, or TG001 to TG003) for a file that cannot be used; every wrong setting is reported, and so is every table that is not ours.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        for name, keys in _TABLES.items():
            path = folder / name
            if path.is_file():
                table, problems = _table(path, keys)
                problems += _wrong_settings(table, path)
                if problems:
                    raise InputError(problems)
                if table is not None:
                    return _settings(table)
    return Settings()


def _table(path: Path, keys: tuple[str, ...]) -> tuple[dict[str, Any] | None, list[Diagnostic]]:
    """The table of that name, if the file has it, and what stands beside it in a place that only tritongen reads."""
    source = read_text(path)
    if keys[0] == "tool" and "tritongen" not in source.text:
        return None, []  # another tool's file: whether it is valid is that tool's business
    try:
        value: Any = tomllib.loads(source.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError([_problem(path, f"this is no TOML: {error}", "mend the place that is named")]) from error
    name, problems = f"[{'.'.join(keys)}]", []
    if keys[0] == "tool" and keys[1] in value:
        problems.append(_problem(path, f"[{keys[1]}] stands where no tool's settings are looked for", f"did you mean {name}?"))
    for index, key in enumerate(keys):
        if index == len(keys) - 1:
            problems += [_stray(other, value[other], name, path) for other in value if other != key]
        value = value.get(key)
        if value is None:
            return None, problems
        if not isinstance(value, dict):
            return None, [*problems, _problem(path, f"{'.'.join(keys[: index + 1])} must be a table", f"write {name}")]
    assert isinstance(value, dict)
    return value, problems


def _stray(key: str, value: object, name: str, path: Path) -> Diagnostic:
    """A key beside the table of the settings, which nothing reads."""
    shown = repr(key[:60])
    if isinstance(value, dict):
        return _problem(path, f"there is no table {shown} here, and nothing in it is read", f"did you mean {name}?")
    return _problem(path, f"{shown} stands outside of {name}, where nothing is read", f"write it below a line {name}")


def _wrong_settings(table: dict[str, Any] | None, path: Path) -> list[Diagnostic]:
    """What is wrong with the keys of the table and their values."""
    if table is None:
        return []
    problems = [_unknown(key, path) for key in table if key not in _KEYS]
    release, gpus = table.get("release"), table.get("gpus")
    if release is not None and not isinstance(release, str):
        problems.append(_problem(path, f"release must be a text, and it is {release!r}", 'put it in quotes: release = "25.08"'))
    if gpus is not None and (not isinstance(gpus, int) or isinstance(gpus, bool) or gpus < 0):
        problems.append(_problem(path, f"gpus must be a whole number from 0 on, and it is {gpus!r}", "write gpus = 0"))
    problems += [
        _problem(path, f"{key} must be true or false, and it is {table[key]!r}", f"write {key} = true")
        for key in ("disable-auto-complete-config", "strict")
        if not isinstance(table.get(key, False), bool)
    ]
    problems += [
        _problem(path, f"{key} must be a list of texts, and it is {table[key]!r}", f'write {key} = ["TG37"]')
        for key in ("select", "ignore")
        if not _is_list_of_texts(table.get(key, []))
    ]
    return problems


def _settings(table: dict[str, Any]) -> Settings:
    select, ignore = (tuple(table[key]) if key in table else None for key in ("select", "ignore"))
    return Settings(table.get("release"), table.get("gpus"), table.get("disable-auto-complete-config"), select, ignore, table.get("strict"))


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _unknown(key: str, path: Path) -> Diagnostic:
    close = difflib.get_close_matches(key.replace("_", "-"), _KEYS, n=1, cutoff=0.5)
    return _problem(path, f"there is no setting {key[:60]!r}", f"did you mean {close[0]}?" if close else f"the settings are {', '.join(_KEYS)}")


def _problem(path: Path, message: str, hint: str) -> Diagnostic:
    return Diagnostic("TG073", message, Location(str(path)), hint=hint)


def parse_release(name: str) -> Release | None:
    """The release of a name; None for one that is well formed and not in the table. Raises InputError (TG072) for what is no release's name."""
    if not RELEASE_PATTERN.fullmatch(name):
        close = difflib.get_close_matches(name, [release.name for release in RELEASES], n=1, cutoff=0.7)
        hint = f"write year and month with two digits each, as in {close[0] if close else RELEASES[-1].name}"
        raise InputError([Diagnostic("TG072", f"{name[:60]!r} is not a release of NVIDIA's Triton container", hint=hint)])
    return find_release(name)
