"""The four kinds of report, for the same findings."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from tritongen.check.findings import CheckFinding
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import ServerStartError
from tritongen.report.checked import format_check
from tritongen.report.github import format_github
from tritongen.report.json import format_json
from tritongen.report.sarif import format_sarif
from tritongen.report.text import format_diagnostic, format_error, printable
from tritongen.rules import Edit

BYTES = os.fsdecode(b"bad\xff:,%\nname")
PLAIN = CheckFinding(
    Diagnostic("TG208", "no field 'inputs'", Location("r/m/config.pbtxt", 3, 1, "inputs {"), "Triton refuses it", "did you mean 'input'?", "m"),
    "unknown-field",
    "refused",
    (Edit(0, 1, b""),),
    Path("r/m/config.pbtxt"),
)
FOLDER = CheckFinding(
    Diagnostic("TG077", "too much", Location(f"r/{BYTES}"), hint="one:\ntwo", model=BYTES, severity=Severity.ADVICE), "too-many-files", "fragile"
)
NOWHERE = CheckFinding(Diagnostic("TG074", "100% of\r\nlines\x1b[31m", severity=Severity.WARNING), "unused-suppression", "fragile")
ALL = (NOWHERE, FOLDER, PLAIN)


def test_json_has_every_key_for_every_finding():
    data = json.loads(format_json(ALL, models=3, fixed=2))
    assert list(data) == ["diagnostics", "summary"]
    assert data["summary"] == {"models": 3, "errors": 1, "warnings": 1, "advice": 1, "fixable": 1, "fixed": 2}
    assert data["diagnostics"][2] == {
        "code": "TG208",
        "name": "unknown-field",
        "severity": "error",
        "consequence": "refused",
        "model": "m",
        "path": "r/m/config.pbtxt",
        "line": 3,
        "column": 1,
        "message": "no field 'inputs'",
        "hint": "did you mean 'input'?",
        "fixable": True,
    }
    assert data["diagnostics"][0]["path"] is None
    assert data["diagnostics"][1]["line"] is None
    assert {tuple(one) for one in map(tuple, data["diagnostics"])} == {tuple(data["diagnostics"][0])}


@pytest.mark.parametrize(
    "render", [lambda found: format_json(found, models=1, fixed=0), format_sarif, format_github, lambda found: format_check(found, models=1, outcome=None)]
)
def test_hostile_names_can_be_printed_everywhere(render):
    text = click.unstyle(render(ALL))
    text.encode("utf-8")
    assert "\x1b" not in text
    assert "\\xff" in text or "%FF" in text


def test_sarif_is_of_the_form_that_the_standard_asks_for():
    log = json.loads(format_sarif(ALL))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TG074", "TG077", "TG208"]
    for rule in rules:
        assert {"id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"} <= set(rule)
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        for location in result.get("locations", []):
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri)
            region = location["physicalLocation"].get("region", {"startLine": 1})
            assert region["startLine"] >= 1
    assert run["results"][2]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "r/m/config.pbtxt", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "startColumn": 1, "snippet": {"text": "inputs {"}},
    }
    assert unquote(run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], errors="surrogateescape") == f"r/{BYTES}"


def test_sarif_locations_are_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, expected in ((tmp_path / "r/m", ("r/m", "%SRCROOT%")), (Path("/elsewhere/m"), ("file:///elsewhere/m", None))):
        finding = CheckFinding(Diagnostic("TG077", "x", Location(str(path))), "too-many-files", "fragile")
        artifact = json.loads(format_sarif([finding]))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        assert (artifact["uri"], artifact.get("uriBaseId")) == expected


def test_github_commands_are_escaped_and_one_a_line():
    lines = format_github(ALL).splitlines()
    assert lines[2] == (
        "::error file=r/m/config.pbtxt,line=3,col=1,title=TG208 unknown-field::"
        "no field 'inputs'%0AWhat follows: Triton refuses it%0AWhat to do: did you mean 'input'?"
    )
    assert lines[1].startswith("::notice file=r/bad\\xff%3A%2C%25\\nname,title=TG077 too-many-files::too much%0A")
    assert lines[0].startswith("::warning title=TG074 unused-suppression::100%25 of%0Alines\\x1b[31m")


def test_text_is_grouped_by_model_and_ends_in_a_summary():
    text = click.unstyle(format_check((PLAIN, PLAIN), models=7, outcome=None))
    assert text.count("model m\n") == 1
    assert "r/m/config.pbtxt:3:1: error TG208: no field 'inputs'\n    3 | inputs {\n      | ^\n" in text
    assert text.endswith("\n2 errors in 7 models; --fix can mend 2\n")
    assert format_check((), models=1, outcome=None) == "1 model checked, nothing found\n"


def finding(path, line, consequence, model="m"):
    return CheckFinding(Diagnostic("TG208", f"mistake {line}", Location(path, line), consequence, model=model), "unknown-field", "refused")


def test_a_consequence_is_said_once_for_findings_in_a_row():
    found = [finding("r/m/config.pbtxt", line, follows) for line, follows in enumerate(("refused", "refused", "ignored", "refused"), 1)]
    text = click.unstyle(format_check((*found, finding("r/m/1/model.py", 1, "refused")), models=1, outcome=None))
    assert [line.split()[-1] for line in text.splitlines() if "mistake" in line or "what follows" in line] == [
        *("1", "refused", "2", "3", "ignored", "4", "refused"),
        *("1", "refused"),
    ]


def test_a_model_of_two_repositories_is_two():
    found = (finding("a/m/config.pbtxt", 1, "x"), finding("b/m", 2, "x"), finding("b/m/1/model.py", 3, "x"), finding("b/n", 4, "x", "n"))
    lines = click.unstyle(format_check(found, models=3, outcome=None)).splitlines()
    assert [line for line in lines if line.startswith("model ")] == ["model m in a", "model m in b", "model n"]


def test_a_hint_of_several_lines_stays_one_block():
    assert "    what to do: one:\n      two\n" in format_diagnostic(FOLDER.diagnostic)


def test_what_a_terminal_would_obey_is_escaped():
    assert printable("a\x1b[2J\u202e\r\x85") == "a\\x1b[2J\\u202e\\r\\x85"
    assert printable("größe → 1") == "größe → 1"
    assert printable(os.fsdecode(b"\xff")) == "\\xff"
    assert printable("\ud800") == "\\ud800"


def test_a_reason_of_triton_is_said_once_and_the_log_where_there_is_none():
    reasons = {"m": "unexpected inference input 'xx'"}
    shown = format_error(ServerStartError("Triton did not load 1 of the models:\n  m: unexpected inference input 'xx'", reasons=reasons, log_tail="the log"))
    assert shown.count("unexpected inference input 'xx'") == 1
    assert "the log" not in shown
    assert "the log" in format_error(ServerStartError("tritonserver ended with status 1", log_tail="the log"))
