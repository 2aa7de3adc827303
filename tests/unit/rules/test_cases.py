"""Every rule is executed: its `bad` cases raise exactly its code, its `good` cases raise nothing, and its words are all there.

Cases lie in tests/rules/<CODE>/bad*/ and good*/, as trees of text (see tests/rules/building.py).
"""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[2] / "rules"
sys.path.insert(0, str(CASES))

from building import beside, build_tree, repositories, server_facts

from tritongen.check.evaluate import evaluate_paths
from tritongen.rules import RULES

FOLDERS = sorted(path for code in CASES.glob("TG*") for path in code.iterdir() if path.is_dir())


@pytest.mark.parametrize("case", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_case_raises_exactly_what_it_is_named_after(case, tmp_path):
    root = build_tree(case, tmp_path / "repository")
    codes = {diagnostic.code for diagnostic in evaluate_paths(repositories(case, root), server_facts(case))}
    assert codes == ({case.parent.name} if case.name.startswith("bad") else set()) | beside(case)


@pytest.mark.parametrize("case", [case for case in FOLDERS if case.name.startswith("bad")], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_commands_in_hints_work_from_the_current_folder(case, tmp_path, monkeypatch):
    """As the finding's own path does: what they move, remove or copy is there, and what they make is beside it."""
    monkeypatch.chdir(tmp_path)
    root = build_tree(case, Path("repository"))
    for diagnostic in evaluate_paths(repositories(case, root), server_facts(case)):
        for command, words in re.findall(r"\b(mv|rm|mkdir(?: -p)?|chmod \S+|put the \w+(?: \w+)? at) ([^\s,)`]+(?: [^\s,)`]+)?)", diagnostic.hint):
            source, *targets = shlex.split(words)[: 2 if command == "mv" else 1]
            assert command.startswith(("mkdir", "put")) or os.path.lexists(source), diagnostic.hint
            assert all(word.startswith(f"{root}/") for word in (source, *targets)), diagnostic.hint


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_has_cases_and_words(rule):
    names = {path.name for path in (CASES / rule.code).iterdir()} if (CASES / rule.code).is_dir() else set()
    assert any(name.startswith("bad") for name in names), "no bad case"
    assert any(name.startswith("good") for name in names), "no good case"
    for words in (rule.summary, rule.why, rule.bad, rule.good):
        assert words.strip()
    assert rule.summary.endswith(".")
    assert rule.name == rule.name.lower()
    assert (rule.check is None) != (rule.check_all is None)


def test_codes_and_names_are_used_once():
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_no_case_is_left_without_a_rule():
    assert {folder.parent.name for folder in FOLDERS} <= {rule.code for rule in RULES}
