"""What became of the plans of a run, as values: who reports them need not know how they were built."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from tritongen.build.survey import Wanted
from tritongen.diagnostics import Diagnostic


class State(enum.Enum):
    """What became of a plan."""

    GOOD = "good"
    WANTED = "wanted"
    BUILT = "built"
    ELSEWHERE = "elsewhere"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of one plan.

    Attributes:
        wanted: the plan, and why it was to be built.
        state: good as it was; wanted, of a dry run; built; to be built elsewhere; failed.
        seconds: how long the build took; 0 where there was none.
        size_bytes: of a plan that was built.
        notes: what a user should know.
        problems: why it failed.
    """

    wanted: Wanted
    state: State
    seconds: float = 0.0
    size_bytes: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Building:
    """A run.

    Attributes:
        root: the repository's folder.
        findings: what was found while rendering the spec; none for a repository.
        outcomes: one for each plan.
        notes: what a user should know of the way in which the spec was rendered.
    """

    root: Path
    findings: tuple[Diagnostic, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def unserved(self) -> tuple[str, ...]:
        """What has no plan for the GPU of this machine, though it has some for others; as sentences without their full stop."""
        kinds: dict[tuple[str, int], list[Wanted]] = {}
        for outcome in self.outcomes:
            kinds.setdefault((outcome.wanted.recipe.model, outcome.wanted.recipe.version), []).append(outcome.wanted)
        return tuple(
            f"model {model}, version {version}: no plan is for this machine; {'; '.join(each.elsewhere for each in plans)}"
            for (model, version), plans in kinds.items()
            if all(each.elsewhere for each in plans)
        )

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """All that stood against any plan."""
        return tuple(problem for outcome in self.outcomes for problem in outcome.problems)
