"""The `tritongen` command: a group that imports a command's module only when that command runs."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from typing import Any

import click

_COMMANDS = {
    "render": "write the model repository of a spec",
    "estimate": "estimate the GPU memory of a spec's models, and which batches fit",
    "check": "check any model repository by Triton's own rules",
    "build": "build the TensorRT plans of a spec",
    "init": "write a starter spec for ONNX models",
    "serve": "serve a spec or a repository on a real Triton, here",
    "infer": "send one request to a running Triton",
    "load": "load a running Triton, and see its true tail",
    "doctor": "check what serving here needs",
    "schema": "print the spec's JSON Schema",
    "releases": "list NVIDIA's containers, and what is known about each",
}
"""Name → the line that `--help` shows; the command itself lies in the module of that name."""


class LazyGroup(click.Group):
    """Lists its commands without importing them, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which people meet them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(f"tritongen.cli.{cmd_name}"), "command")  # noqa: B009 - the attribute is the convention
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, from the lines above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the closest command for a misspelt one."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            import difflib

            close = difflib.get_close_matches(name, _COMMANDS, n=1)
            ctx.fail(f"no command '{name}'." + (f" Did you mean '{close[0]}'?" if close else f" There are {', '.join(_COMMANDS)}."))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tritongen", message="tritongen %(version)s")
def cli() -> None:
    """One spec in; a served, verified, load-tested model on NVIDIA Triton out.

    Start with `tritongen init MODEL.onnx`, then `tritongen serve spec.yaml`.
    Exit codes: 0 fine, 1 findings, 2 bad input, 3 this machine or the server lacks something.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line. What tritongen raises on purpose is printed and becomes its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape, and never a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """`main`, with the exit code as its result."""
    try:
        result: Any = cli.main(args=argv, prog_name="tritongen", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): no more to say, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _unwritten(error)
    except Exception as error:  # noqa: BLE001 - told apart at once: only tritongen's own are handled
        return _report(error)
    return result if isinstance(result, int) else 0


def _unwritten(error: OSError) -> int:
    """Say on stderr that our output found no place; raise any other error of the operating system again: those of our files are handled where they arise."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename is not None:
        raise error
    from tritongen.errors import EnvironmentProblem

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    hint = "what the command was to write into files is written; make room where its output goes, and run it again"
    with contextlib.suppress(OSError):
        _report(EnvironmentProblem(f"the output could not be written: {error.strerror}", hint=hint))
    return EnvironmentProblem.exit_code


def _report(error: Exception) -> int:
    """Print what tritongen raised on purpose, on stderr; raise anything else again: that is a bug of ours and shows as one."""
    from tritongen.errors import InputError, TritongenError

    if not isinstance(error, TritongenError):
        raise error
    from tritongen.report.text import format_diagnostics, format_error, summary

    if isinstance(error, InputError):
        click.echo(format_diagnostics(error.diagnostics), err=True)
        click.echo(summary(error.diagnostics), err=True)
    else:
        click.echo(format_error(error), err=True)
    return error.exit_code


if __name__ == "__main__":
    main()
