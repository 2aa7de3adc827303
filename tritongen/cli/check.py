"""`tritongen check [PATH...]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tritongen.cli.options import OutputPath

if TYPE_CHECKING:
    from tritongen.check.engine import CheckOptions
    from tritongen.check.findings import CheckFinding
    from tritongen.check.fix import FixOutcome
    from tritongen.check.settings import Settings
    from tritongen.diagnostics import Diagnostic

_WORDS = "Codes (TG262), beginnings of codes (TG26) or names, separated by commas."


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--release", metavar="YY.MM", help="The NVIDIA release of the server. Without it, nothing that depends on one is said.")
@click.option("--gpus", type=click.IntRange(min=0), help="How many GPUs the server sees; 0 is a statement. Without it, nothing that depends on them is said.")
@click.option(
    "--disable-auto-complete-config/--auto-complete-config", "no_auto_complete", default=None, help="Whether the server runs with the first of the two."
)
@click.option("--select", multiple=True, metavar="CODES", help=f"Report these only. {_WORDS}")
@click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these.")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True, help="For people or for programs.")
@click.option("-o", "--output", type=OutputPath(), help="Write the report to a file; - is stdout.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without changing the meaning.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option("--explain", metavar="CODE", help="Say all there is to say about a code, or list those that begin so (TG26), and end.")
@click.option("--strict/--no-strict", default=None, help="Exit 1 for warnings too.")
def command(
    paths: tuple[Path, ...],
    release: str | None,
    gpus: int | None,
    no_auto_complete: bool | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    form: str,
    output: Path | None,
    fix: bool,
    diff: bool,
    explain: str | None,
    strict: bool | None,
) -> int:
    """Check Triton model repositories by the server's own rules, offline.

    PATH is a model repository, a model's folder, or a lone config.pbtxt; the default is the folder model_repository here, or else the current folder.
    Several repositories are taken as given to one server. Settings: [tool.tritongen.check] in pyproject.toml, or [check] in tritongen.toml.
    """
    from tritongen.check.explain import explain as page
    from tritongen.check.settings import Settings
    from tritongen.errors import InputError

    if explain is not None:
        click.echo(page(explain), nl=False)
        return 0
    if diff and form != "text" and output is None:
        raise click.UsageError("--diff prints a patch, and --format another report: name a file for the report with -o")
    given = Settings(release, gpus, no_auto_complete, _words(select), _words(ignore), strict)
    try:
        return _check(paths, given, form, output, fix=fix, diff=diff)
    except InputError as error:
        if form != "text":
            # A program that reads the report finds one, whatever the exit code.
            _write(_failure(error.diagnostics, form), output)
        raise


def _check(paths: tuple[Path, ...], given: Settings, form: str, output: Path | None, *, fix: bool, diff: bool) -> int:
    """Look, mend, report; returns the exit code. Raises InputError for what cannot be looked at or written."""
    from tritongen.check.engine import findings_of, load_groups
    from tritongen.check.fix import plan_fixes, write_fixes
    from tritongen.check.settings import find_settings
    from tritongen.check.targets import find_targets

    settings = given.over(find_settings(Path()))
    options = _options(settings)
    groups = load_groups(find_targets(paths), options.server)
    models = sum(len(group.asked) for group in groups)
    outcome = plan_fixes(groups, options) if fix or diff else None
    if fix and outcome is not None and not diff:
        write_fixes(outcome.files)
        _write(_report(outcome.left, form, models, outcome), output)
        return _exit_code(outcome.left, strict=bool(settings.strict))
    findings = findings_of(groups, options)
    if outcome is not None:
        _show_diff(outcome)
    if outcome is None or output is not None:
        _write(_report(findings, form, models, None), output)
    return _exit_code(findings, strict=bool(settings.strict))


def _words(options: tuple[str, ...]) -> tuple[str, ...] | None:
    """`--select A,B --select C` as three words; None where the option was not given."""
    return tuple(word.strip() for option in options for word in option.split(",") if word.strip()) if options else None


def _options(settings: Settings) -> CheckOptions:
    """What the engine is told; says on stderr what is not known."""
    from tritongen.check.engine import CheckOptions
    from tritongen.check.selection import make_selection
    from tritongen.check.settings import parse_release
    from tritongen.report.text import format_diagnostic
    from tritongen.rules import ServerFacts

    selection = make_selection(settings.select or (), settings.ignore or ())
    release = parse_release(settings.release) if settings.release is not None else None
    if settings.release is not None and release is None:
        click.echo(format_diagnostic(_unknown_release(settings.release)), err=True)
    return CheckOptions(ServerFacts(release, settings.gpus, not settings.disable_auto_complete), selection)


def _unknown_release(name: str) -> Diagnostic:
    from tritongen.diagnostics import Diagnostic, Severity
    from tritongen.releases import RELEASES

    message = f"release {name} is not known to this version of tritongen; nothing that depends on it was checked"
    hint = f"the releases from {RELEASES[0].name} to {RELEASES[-1].name} are known; check the number"
    return Diagnostic("TG115", message, hint=hint, severity=Severity.WARNING)


def _report(findings: tuple[CheckFinding, ...], form: str, models: int, outcome: FixOutcome | None) -> str:
    fixed = sum(file.findings for file in outcome.files) if outcome else 0
    if form == "json":
        from tritongen.report.json import format_json

        return format_json(findings, models=models, fixed=fixed)
    if form == "sarif":
        from tritongen.report.sarif import format_sarif

        return format_sarif(findings)
    if form == "github":
        from tritongen.report.github import format_github

        return format_github(findings)
    from tritongen.report.checked import format_check

    return format_check(findings, models=models, outcome=outcome)


def _failure(diagnostics: tuple[Diagnostic, ...], form: str) -> str:
    """The report of a run that could not do what it was asked."""
    from tritongen.check.reading import described

    findings = tuple(described(diagnostic) for diagnostic in diagnostics)
    if form == "sarif":
        from tritongen.report.sarif import format_sarif

        return format_sarif((), failures=findings)
    return _report(findings, form, 0, None)


def _show_diff(outcome: FixOutcome) -> None:
    from tritongen.check.fix import unified_diff
    from tritongen.report.checked import generated_note

    for file in outcome.files:
        click.echo(unified_diff(file), nl=False)
    number = sum(file.findings for file in outcome.files)
    click.echo(f"{number} finding{'' if number == 1 else 's'} in {len(outcome.files)} file{'' if len(outcome.files) == 1 else 's'} would be mended", err=True)
    for path in outcome.generated:
        click.echo(generated_note(path), err=True)


def _write(text: str, output: Path | None) -> None:
    """Print a report, or put it into a file."""
    from tritongen.diagnostics import Diagnostic, Location
    from tritongen.errors import InputError

    if output is None or str(output) == "-":
        click.echo(text, nl=False)
        return
    try:
        output.write_text(click.unstyle(text), encoding="utf-8")
    except OSError as error:
        problem = Diagnostic("TG079", f"the report cannot be written: {error.strerror}", Location(str(output)), hint="choose another file with -o")
        raise InputError([problem]) from error


def _exit_code(findings: tuple[CheckFinding, ...], *, strict: bool) -> int:
    from tritongen.diagnostics import Severity

    failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return int(any(finding.diagnostic.severity in failing for finding in findings))
