"""`tritongen check` without a command line: paths in, findings out. Reads; `fix` alone writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.check.contexts import LoadedModel, large_lone_config, load_lone_config, load_model
from tritongen.check.evaluate import evaluate_models, judged_codes
from tritongen.check.findings import CheckFinding
from tritongen.check.reading import described
from tritongen.check.selection import Selection
from tritongen.check.suppression import Suppression, read_suppressions, unused
from tritongen.check.targets import Target, TargetKind
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import RepositoryError
from tritongen.modelconfig.reading import MAX_BYTES
from tritongen.repository.scan import ModelFolder, scan_model, scan_repository
from tritongen.rules import RULES, Rule, ServerFacts
from tritongen.rules.rule import Consequence
from tritongen.sources.text import read_bytes


@dataclass(frozen=True)
class CheckOptions:
    """What a run is told.

    Attributes:
        server: what is known of the server that will load the repository.
        selection: the codes to report.
        rules: the catalogue.
    """

    server: ServerFacts = field(default_factory=ServerFacts)
    selection: Selection = field(default_factory=Selection)
    rules: tuple[Rule, ...] = RULES

    @property
    def chosen_rules(self) -> tuple[Rule, ...]:
        """The rules whose codes are selected."""
        return tuple(rule for rule in self.rules if rule.code in self.selection)


@dataclass(frozen=True)
class Group:
    """Models that one server would be given together; rules that look across models see one group at a time.

    Attributes:
        asked: those to report about.
        beside: models that those refer to, looked at only for what they say about `asked`.
        across: whether rules that look across models are asked: not where models that `asked` refer to may lie elsewhere.
        findings: what was found before any rule was asked.
    """

    asked: tuple[LoadedModel, ...]
    beside: tuple[LoadedModel, ...] = ()
    across: bool = True
    findings: tuple[CheckFinding, ...] = ()


def check(targets: Sequence[Target], options: CheckOptions) -> tuple[CheckFinding, ...]:
    """Every finding, by model and place. Raises InputError for a path that cannot be read."""
    return findings_of(load_groups(targets, options.server), options)


def load_groups(targets: Sequence[Target], server: ServerFacts) -> tuple[Group, ...]:
    """Look at all that was given. Repositories form one group, as tritonserver takes them; a model's folder and a lone config are groups of their own.

    Raises InputError for a path that cannot be read.
    """
    repositories = [target.path for target in targets if target.kind is TargetKind.REPOSITORY]
    groups = [_repositories(repositories, server)] if repositories else []
    for target in targets:
        if target.kind is TargetKind.MODEL:
            groups.append(_model_folder(target.path, server))
        elif target.kind is TargetKind.CONFIG:
            groups.append(Group((_lone_config(target.path, server),)))
    return tuple(groups)


def findings_of(groups: Iterable[Group], options: CheckOptions) -> tuple[CheckFinding, ...]:
    """The findings in groups that were loaded: selected, not suppressed, in order, each said once."""
    found: dict[CheckFinding, None] = {}
    for group in groups:
        found.update(dict.fromkeys(_in_group(group, options)))
    return tuple(sorted(found, key=lambda finding: finding.sort_key))


def _in_group(group: Group, options: CheckOptions) -> list[CheckFinding]:
    asked = {id(model.context) for model in group.asked}
    names = {model.context.name for model in group.asked}
    rules = tuple(rule for rule in options.chosen_rules if group.across or rule.check_all is None)
    models = (*group.asked, *group.beside)
    found = [*group.findings, *(finding for finding in evaluate_models(models, rules) if len(asked) == len(models) or finding.diagnostic.model in names)]
    found = [finding for finding in found if finding.diagnostic.code in options.selection]
    return _without_suppressed(found, group.asked, rules, options.selection)


def _without_suppressed(found: list[CheckFinding], models: Iterable[LoadedModel], rules: Sequence[Rule], selection: Selection) -> list[CheckFinding]:
    by_path: dict[str, list[Suppression]] = {}
    owners: list[tuple[LoadedModel, tuple[Suppression, ...]]] = []
    for model in models:
        suppressions = read_suppressions(model.context.text, str(model.config_path))
        if suppressions:
            owners.append((model, suppressions))
            by_path.setdefault(str(model.config_path), []).extend(suppressions)
    if not owners:
        return found
    used: set[Suppression] = set()
    kept = []
    for finding in found:
        place = finding.diagnostic.location
        covering = [suppression for suppression in by_path.get(place.path, ()) if suppression.covers(finding.diagnostic)] if place else []
        used.update(covering)
        if not covering:
            kept.append(finding)
    for model, suppressions in owners:
        judged = {code for code in judged_codes(model, rules) if code in selection}
        kept += [described(diagnostic) for diagnostic in unused(suppressions, used, judged, model.context.name) if diagnostic.code in selection]
    return kept


def _repositories(paths: Sequence[Path], server: ServerFacts) -> Group:
    models: list[LoadedModel] = []
    findings: list[CheckFinding] = []
    for path in paths:
        for folder in _scanned(path):
            model, notes = _loaded(folder, server)
            models.append(model)
            findings += notes
    return Group(tuple(models), findings=tuple(findings))


def _scanned(path: Path) -> tuple[ModelFolder, ...]:
    try:
        return scan_repository(path).models
    except OSError as error:
        hint = "check the path and its permissions"
        raise RepositoryError([Diagnostic("TG070", f"the folder cannot be listed: {error.strerror}", Location(str(path)), hint=hint)]) from error


def _loaded(folder: ModelFolder, server: ServerFacts) -> tuple[LoadedModel, list[CheckFinding]]:
    """A model, and what is said of its folder before any rule is asked."""
    if not folder.truncated:
        return load_model(folder, server), []
    message = f"the folder holds more than {len(folder.entries):,} files and folders; not all were looked at, so nothing about them was checked"
    hint = "move what is not part of the model out of its folder"
    diagnostic = Diagnostic("TG077", message, Location(str(folder.path)), Consequence.FRAGILE.words, hint, folder.name, Severity.ADVICE)
    known = load_model(dataclasses.replace(folder, entries={name: facts for name, facts in folder.entries.items() if "/" not in name}), server)
    blind = dataclasses.replace(known.context, folder=None, models={}) if not folder.config_problem else known.context
    return dataclasses.replace(known, context=blind), [described(diagnostic)]


def _lone_config(path: Path, server: ServerFacts) -> LoadedModel:
    """A config.pbtxt alone. One that is too large is not read, as in a repository. Raises InputError (TG001) where it cannot be read."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # reading it says what is wrong
    return large_lone_config(path, size, server) if size > MAX_BYTES else load_lone_config(path, read_bytes(path), server)


def _model_folder(path: Path, server: ServerFacts) -> Group:
    """One model's folder, with the models beside it that it is an ensemble of."""
    root = path.resolve().parent
    model, notes = _loaded(scan_model(path, root=root), server)
    beside: dict[str, LoadedModel] = {}
    across, waiting = True, [model]
    while waiting:
        for step in waiting.pop().context.config.ensemble_scheduling.step:
            name = step.model_name
            if name in beside or name == model.context.name:
                continue
            if not name or "/" in name or "\0" in name or name in (".", "..") or not (root / name).is_dir():
                across = False
                continue
            beside[name] = _loaded(scan_model(root / name, root=root), server)[0]
            waiting.append(beside[name])
    return Group((model,), tuple(beside.values()) if across else (), across, tuple(notes))
