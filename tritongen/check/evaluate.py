"""Run rules over models and turn what they find into findings with places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tritongen.check.codes.reading import ENTRIES as READER_CODES
from tritongen.check.contexts import LoadedModel, load_model
from tritongen.check.findings import CheckFinding
from tritongen.check.reading import reader_findings
from tritongen.diagnostics import Diagnostic, Location
from tritongen.repository.scan import CONFIG_NAME, scan_repository
from tritongen.rules import RULES, Finding, ModelContext, Rule, ServerFacts, access, links

_WITHOUT_CONFIG = ("TG22", "TG24")
"""Families that still say something right about a model whose config does not parse: its folders and versions."""

_READ_IN_PART = ("TG076", "TG200", "TG218", "TG219")
"""Findings of the reader behind which it did not look."""


def evaluate_path(path: Path, server: ServerFacts, rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """Every finding in a repository. Raises OSError where the folder cannot be listed."""
    return evaluate_paths([path], server, rules)


def evaluate_paths(paths: Sequence[Path], server: ServerFacts, rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """Every finding in repositories that one server is given together. Raises OSError where a folder cannot be listed."""
    models = [load_model(folder, server) for path in paths for folder in scan_repository(path).models]
    return [finding.diagnostic for finding in evaluate_models(models, rules)]


def evaluate(contexts: Sequence[ModelContext], rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """Every finding of `rules` in these models, whose configs are taken as they are."""
    found = [*_across_models(contexts, rules, frozenset())]
    for context in contexts:
        found += _in_model(context, rules, context_path(context))
    return [finding.diagnostic for finding in found]


def evaluate_models(models: Sequence[LoadedModel], rules: Sequence[Rule] = RULES) -> list[CheckFinding]:
    """Every finding in these models: what the reader says of their configs, then what `rules` find.

    Where a config does not parse, Triton gets no further, so only rules about folders and versions are asked.
    """
    broken = frozenset(model.context.name for model in models if not model.parses)
    found = [finding for model in models for finding in reader_findings(model)]
    found += _across_models([model.context for model in models], rules, broken)
    for model in models:
        found += _in_model(model.context, rules_for(model, rules), model.config_path)
    return found


def rules_for(model: LoadedModel, rules: Sequence[Rule]) -> Sequence[Rule]:
    """The rules about single models that can say something right about this one."""
    folder = model.context.folder
    if folder is not None and (folder.link or folder.locked is not None):
        return [rule for rule in rules if rule in (*links.RULES, *access.RULES)]
    if folder is not None and folder.config_problem:
        return ()
    if not model.parses:
        return [rule for rule in rules if _asks_no_config(rule)]
    return rules


def _asks_no_config(rule: Rule) -> bool:
    return rule.code.startswith(_WITHOUT_CONFIG) and "config" not in rule.needs


def judged_codes(model: LoadedModel, rules: Sequence[Rule]) -> set[str]:
    """Codes that were looked for in a model: those of its reader, as far as it has read, and of the rules that knew all they need."""
    asked = {rule.code for rule in rules_for(model, rules) if rule.check_all is not None or knows_enough(rule, model.context)}
    if any(diagnostic.code in _READ_IN_PART for diagnostic in model.read.diagnostics):
        return asked
    return asked | {entry.code for entry in READER_CODES}


def _across_models(contexts: Sequence[ModelContext], rules: Sequence[Rule], broken: Collection[str]) -> Iterator[CheckFinding]:
    by_name: dict[str, ModelContext] = {}
    for context in contexts:
        by_name.setdefault(context.name, context)
    for rule in rules:
        for finding in rule.check_all(tuple(contexts)) if rule.check_all is not None else ():
            context = by_name[finding.model]
            # One that needs no config speaks of names and folders, and of which models there are.
            if "config" not in rule.needs or (context.name not in broken and not _depends_on(context, broken)):
                yield _finding(rule, context, finding, context_path(context))


def _depends_on(context: ModelContext, broken: Collection[str]) -> bool:
    """Whether a model is an ensemble over a model whose config does not parse: what it gets from there is not known."""
    return any(step.model_name in broken for step in context.config.ensemble_scheduling.step) if broken else False


def _in_model(context: ModelContext, rules: Sequence[Rule], source: Path | None) -> Iterator[CheckFinding]:
    for rule in rules:
        if rule.check is not None and knows_enough(rule, context):
            for finding in rule.check(context):
                yield _finding(rule, context, finding, source)


def knows_enough(rule: Rule, context: ModelContext) -> bool:
    """Whether all that a rule needs is known of a model."""
    return rule.needs <= context.known


def _finding(rule: Rule, context: ModelContext, finding: Finding, source: Path | None) -> CheckFinding:
    consequence = finding.consequence or rule.consequence
    location = finding.location or (context.locate(finding.key) if context.has_config else _folder(context))
    diagnostic = Diagnostic(rule.code, finding.message, location, finding.follows or consequence.words, finding.hint, context.name, consequence.severity)
    return CheckFinding(diagnostic, rule.name, consequence.value, finding.edits, source)


def context_path(context: ModelContext) -> Path | None:
    """Where a model's config.pbtxt is; None where its folder is not known."""
    return context.folder.path / CONFIG_NAME if context.folder is not None else None


def _folder(context: ModelContext) -> Location | None:
    return Location(str(context.folder.path)) if context.folder is not None else None
