"""`tritongen check` as a user meets it."""

import json
import os
import subprocess
import sys

import pytest
from check_models import CONFIG

GOOD = CONFIG.format(name="m")
BROKEN = GOOD.replace("input {", "inputs {").replace("max_batch_size: 8", 'max_batch_size: "8"')
ONLY_SYNTAX = ("--select", "TG20,TG21")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A config with two mistakes that can be mended, and the current folder beside its repository."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model_repository/m"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(BROKEN)
    return folder / "config.pbtxt"


def test_findings_are_exit_code_1_with_place_and_summary(config, tritongen):
    result = tritongen("check", *ONLY_SYNTAX)
    assert result.code == 1
    assert result.err == ""
    assert "model_repository/m/config.pbtxt:3:17: error TG210" in result.out
    assert "model_repository/m/config.pbtxt:4:1: error TG208" in result.out
    assert result.out.endswith("2 errors in 1 model; --fix can mend 2\n")


def test_nothing_found_is_exit_code_0(config, tritongen):
    config.write_text(GOOD)
    result = tritongen("check", *ONLY_SYNTAX)
    assert (result.code, result.out) == (0, "1 model checked, nothing found\n")


def test_warnings_fail_only_when_strict(config, tritongen, tmp_path):
    config.unlink()
    config.symlink_to(tmp_path / "elsewhere.pbtxt")
    (tmp_path / "elsewhere.pbtxt").write_text(GOOD)
    assert tritongen("check", "--select", "TG076").code == 0
    assert tritongen("check", "--select", "TG076", "--strict").code == 1
    (tmp_path / "tritongen.toml").write_text('[check]\nstrict = true\nselect = ["TG076"]\n')
    assert tritongen("check").code == 1
    assert tritongen("check", "--no-strict").code == 0


def test_advice_never_fails(config, tritongen):
    config.write_text(f"# tritongen: ignore[TG208]\n{GOOD}")
    result = tritongen("check", "--select", "TG074,TG208", "--strict")
    assert result.code == 0
    assert "advice TG074" in result.out


def test_fix_mends_and_says_what_is_left(config, tritongen):
    config.write_text(BROKEN + "what is this\n")
    result = tritongen("check", *ONLY_SYNTAX, "--fix")
    assert result.code == 1
    assert "mended 2 findings: model_repository/m/config.pbtxt" in result.out
    assert "TG210" not in result.out
    assert "TG208" not in config.read_text()
    assert config.read_text().startswith(GOOD)
    config.write_text(BROKEN)
    assert tritongen("check", *ONLY_SYNTAX, "--fix").code == 0
    assert config.read_text() == GOOD


def test_diff_prints_a_patch_that_applies_and_writes_nothing(config, tritongen, tmp_path):
    result = tritongen("check", *ONLY_SYNTAX, "--diff")
    assert result.code == 1
    assert "2 findings in 1 file would be mended" in result.err
    assert config.read_text() == BROKEN
    subprocess.run(["git", "apply", "-"], input=result.out, text=True, check=True, cwd=tmp_path)
    assert config.read_text() == GOOD


def test_formats_and_output_file(config, tritongen, tmp_path):
    data = json.loads(tritongen("check", *ONLY_SYNTAX, "--format", "json").out)
    assert [one["code"] for one in data["diagnostics"]] == ["TG210", "TG208"]
    assert data["summary"]["fixable"] == 2
    result = tritongen("check", *ONLY_SYNTAX, "--format", "sarif", "-o", tmp_path / "out.sarif")
    assert (result.code, result.out) == (1, "")
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "TG210"
    assert tritongen("check", *ONLY_SYNTAX, "--format", "github").out.count("::error file=model_repository/m/config.pbtxt,line=") == 2
    mended = json.loads(tritongen("check", *ONLY_SYNTAX, "--format", "json", "--fix").out)
    assert (mended["diagnostics"], mended["summary"]["fixed"]) == ([], 2)


@pytest.mark.parametrize(
    ("arguments", "settings", "code"),
    [(["missing"], "", "TG070"), (["--release", "25.8"], "", "TG072"), ([], "[checks]\n", "TG073"), (["--select", "TG9999"], "", "TG071")],
)
def test_a_program_gets_its_report_where_nothing_could_be_checked_too(config, tritongen, tmp_path, arguments, settings, code):
    if settings:
        (tmp_path / "tritongen.toml").write_text(settings)
    result = tritongen("check", *arguments, "--format", "json")
    data = json.loads(result.out)
    assert (result.code, [one["code"] for one in data["diagnostics"]]) == (2, [code])
    assert code in result.err
    assert data["summary"] == {"models": 0, "errors": 1, "warnings": 0, "advice": 0, "fixable": 0, "fixed": 0}
    result = tritongen("check", *arguments, "--format", "sarif", "-o", tmp_path / "out.sarif")
    assert (result.code, result.out) == (2, "")
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    assert [one["associatedRule"]["id"] for one in run["invocations"][0]["toolExecutionNotifications"]] == [code]
    assert tritongen("check", *arguments, "--format", "github").out.count(f"title={code}") == 1


def test_a_fix_that_cannot_be_written_is_in_the_report(config, tritongen, tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    result = tritongen("check", *ONLY_SYNTAX, "--fix", "--format", "json")
    assert result.code == 2
    assert [one["code"] for one in json.loads(result.out)["diagnostics"]] == ["TG078"]


def test_explain_says_all_and_checks_nothing(config, tritongen):
    result = tritongen("check", "--explain", "tg208")
    assert result.code == 0
    for words in ("TG208 unknown-field", "What follows:", "Why:", "What to do:", "Bad:", "Good:"):
        assert words in result.out


def test_an_unknown_release_is_a_warning(config, tritongen):
    config.write_text(GOOD)
    result = tritongen("check", *ONLY_SYNTAX, "--release", "31.01")
    assert result.code == 0
    assert "warning TG115: release 31.01 is not known" in result.err
    assert result.out == "1 model checked, nothing found\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], "no such file or folder"),
        (["--select", "TG9999"], "TG071"),
        (["--ignore", "unknown-feild"], "did you mean unknown-field?"),
        (["--release", "25.8"], "as in 25.08"),
        (["--gpus", "-1"], "--gpus"),
        (["--explain", "TG2999"], "no beginning of one"),
        (["--format", "xml"], "xml"),
        (["--format", "json", "--diff"], "-o"),
        (["-o", "no/such/folder/report"], "TG079"),
    ],
)
def test_bad_input_is_exit_code_2_with_a_reason(config, tritongen, arguments, words):
    result = tritongen("check", *arguments)
    assert result.code == 2
    assert words in result.err


def test_wrong_settings_are_exit_code_2(config, tritongen, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.tritongen.check]\nselekt = []\n")
    result = tritongen("check")
    assert result.code == 2
    assert "did you mean select?" in result.err


def test_one_name_in_two_repositories(config, tritongen, tmp_path):
    config.write_text(GOOD)
    (tmp_path / "other/m/1").mkdir(parents=True)
    result = tritongen("check", "model_repository", "other", "--select", "TG229")
    assert result.code == 1
    assert "other/m: error TG229" in result.out
    assert "model_repository/m/config.pbtxt:1:7: error TG229" in result.out


def test_colours_only_on_a_terminal_and_no_crash_where_a_character_cannot_be_shown(config, tmp_path):
    folder = tmp_path / "model_repository" / os.fsdecode("→ é".encode() + b"\xff\n")
    folder.mkdir()
    (folder / "config.pbtxt").write_text("näme {")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1:strict", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from tritongen.cli.main import main; main()", "check"]
    result = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment, check=False)
    assert result.returncode == 1
    assert b"\x1b" not in result.stdout
    assert b"Traceback" not in result.stderr
    assert rb"\u2192 " + b"\xe9" + rb"\xff\n" in result.stdout


def test_a_version_folder_is_no_target(tmp_path, tritongen):
    """Taken for an empty repository, it would be found in order for ever."""
    (tmp_path / "m/1").mkdir(parents=True)
    (tmp_path / "m/config.pbtxt").write_text("bogus: 1\n")
    result = tritongen("check", tmp_path / "m/1")
    assert result.code == 2
    assert f"give the model's folder: {tmp_path / 'm'}" in result.err


def test_a_dash_is_stdout(tmp_path, tritongen, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r/m/1").mkdir(parents=True)
    (tmp_path / "r/m/config.pbtxt").write_text("bogus: 1\n")
    assert '"diagnostics"' in tritongen("check", "r", "--format", "json", "-o", "-").out
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_a_folder_whose_name_is_no_utf8_is_shown_by_its_bytes(form, tmp_path, tritongen):
    folder = tmp_path / "repository" / os.fsdecode(b"caf\xe9 \xff\x1b[2J")
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(CONFIG.format(name="m"))
    (folder / os.fsdecode(b"v\xff")).symlink_to("nowhere")
    out = tritongen("check", tmp_path / "repository", "--format", form).out
    out.encode("utf-8")
    assert "\\udc" not in out.lower()
    assert "\x1b" not in out
    assert ("%FF" in out) if form == "sarif" else ("\\xff" in out)
