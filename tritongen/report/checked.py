"""The report of `tritongen check` for people: the findings by model, what was mended, and one line that sums up."""

from __future__ import annotations

from pathlib import Path

from tritongen.check.findings import CheckFinding
from tritongen.check.fix import FixOutcome
from tritongen.report.text import format_by_model, printable, summary


def format_check(findings: tuple[CheckFinding, ...], *, models: int, outcome: FixOutcome | None) -> str:
    """Blocks with snippet and caret, then one line such as `2 errors in 14 models; --fix can mend 1`."""
    blocks = format_by_model(finding.diagnostic for finding in findings)
    notes = [f"mended {_number(file.findings, 'finding')}: {printable(str(file.path))}" for file in outcome.files] if outcome else []
    notes += [generated_note(path) for path in outcome.generated] if outcome else []
    return (f"{blocks}\n" if blocks else "") + "".join(f"{note}\n" for note in notes) + _last_line(findings, models, fixing=outcome is not None) + "\n"


def generated_note(path: Path) -> str:
    """Why a file that could be mended was not."""
    return f"not mended, since tritongen wrote it: {printable(str(path))}; change the spec and run `tritongen render`"


def _last_line(findings: tuple[CheckFinding, ...], models: int, *, fixing: bool) -> str:
    looked = _number(models, "model")
    if not findings:
        return f"{looked} checked, nothing found"
    fixable = sum(finding.fixable for finding in findings)
    mending = f"; --fix can mend {fixable}" if fixable and not fixing else ""
    return f"{summary([finding.diagnostic for finding in findings])} in {looked}{mending}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
