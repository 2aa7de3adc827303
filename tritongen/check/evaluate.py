"""Run rules over contexts and turn what they find into diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tritongen.check.contexts import model_context
from tritongen.diagnostics import Diagnostic, Location
from tritongen.repository.scan import scan_repository
from tritongen.rules import RULES, Finding, ModelContext, Rule, ServerFacts


def evaluate_path(path: Path, server: ServerFacts, rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """Every finding in a repository, by model and place. Raises OSError where the folder cannot be listed."""
    contexts, found = [], []
    for folder in scan_repository(path).models:
        context, read = model_context(folder, server)
        contexts.append(context)
        found += read.diagnostics
    return [*found, *evaluate(contexts, rules)]


def evaluate(contexts: Sequence[ModelContext], rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """Every finding of `rules` in these models."""
    found: list[Diagnostic] = []
    for rule in rules:
        if rule.check_all is not None:
            by_name = {context.name: context for context in contexts}
            found += [_diagnostic(rule, by_name[finding.model], finding) for finding in rule.check_all(tuple(contexts))]
        for context in contexts if rule.check is not None else ():
            if knows_enough(rule, context):
                found += [_diagnostic(rule, context, finding) for finding in _check(rule, context)]
    return found


def _check(rule: Rule, context: ModelContext) -> Iterable[Finding]:
    assert rule.check is not None
    return rule.check(context)


def knows_enough(rule: Rule, context: ModelContext) -> bool:
    """Whether all that a rule needs is known of a model."""
    have = {
        "config": context.has_config,
        "folder": context.folder is not None,
        "signature": context.signature is not None,
        "gpus": context.server.gpus is not None,
        "release": context.server.release is not None,
    }
    return all(have[need] for need in rule.needs)


def _diagnostic(rule: Rule, context: ModelContext, finding: Finding) -> Diagnostic:
    consequence = finding.consequence or rule.consequence
    location = finding.location or (context.locate(finding.key) if context.has_config else _folder(context))
    return Diagnostic(rule.code, finding.message, location, consequence.words, finding.hint, context.name, consequence.severity)


def _folder(context: ModelContext) -> Location | None:
    return Location(str(context.folder.path)) if context.folder is not None else None
