"""Settings in pyproject.toml and tritongen.toml."""

import pytest

from tritongen.check.settings import Settings, find_settings, parse_release
from tritongen.errors import InputError

ALL = 'release = "25.08"\ngpus = 0\ndisable-auto-complete-config = true\nselect = ["TG2"]\nignore = ["TG29"]\nstrict = true\n'


@pytest.mark.parametrize(("name", "table"), [("pyproject.toml", "[tool.tritongen.check]\n"), ("tritongen.toml", "[check]\n")])
def test_every_setting_is_read_from_the_nearest_file(tmp_path, name, table):
    (tmp_path / name).write_text(table + ALL)
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    assert find_settings(below) == Settings("25.08", 0, True, ("TG2",), ("TG29",), True)
    (below / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_settings(below).gpus == 0
    (below / "tritongen.toml").write_text("[check]\n")
    assert find_settings(below) == Settings()


def test_an_option_wins_over_a_setting():
    assert Settings(gpus=0, strict=False).over(Settings("25.08", 4, None, None, ("TG37",), True)) == Settings("25.08", 0, None, None, ("TG37",), False)


def test_another_tools_broken_file_is_not_our_business(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert find_settings(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[check]\nrelaese = '25.08'", ["relaese", "did you mean release?"]),
        ("[check]\nrelease = 25.08\ngpus = true\nstrict = 1\nselect = 'TG2'\nfoo = 1", ["release", "gpus", "strict", "select", "foo"]),
        ("[check]\ngpus = -1", ["gpus"]),
        ("check = 3", ["table"]),
        ("[check", ["TOML"]),
        ("[check]\nselect = [1]", ["select"]),
        ("[tool.tritongen.check]\nstrict = true", ["no table 'tool'", "did you mean [check]?"]),
        ("[checks]\nstrict = true", ["no table 'checks'", "did you mean [check]?"]),
        ("strict = true", ["'strict' stands outside of [check]", "write it below a line [check]"]),
        ("gpu = 1\n[chekc]\n[check]\nstrict = 1", ["'gpu' stands outside", "no table 'chekc'", "strict must be true or false"]),
        ("check = 3\nstrict = true", ["must be a table", "'strict' stands outside"]),
    ],
)
def test_wrong_settings_are_all_said(tmp_path, text, words):
    (tmp_path / "tritongen.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        find_settings(tmp_path)
    said = " ".join(diagnostic.message + diagnostic.hint for diagnostic in caught.value.diagnostics)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"TG073"}
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.tritongen]\nstrict = true", ["'strict' stands outside of [tool.tritongen.check]"]),
        ("[tool.tritongen.chek]\nstrict = true", ["no table 'chek'", "did you mean [tool.tritongen.check]?"]),
        ("[tritongen.check]\nstrict = true", ["[tritongen] stands where", "did you mean [tool.tritongen.check]?"]),
        ("[tool.tritongen.check]\nstrict = true\n[tool.tritongen.lint]\n", ["no table 'lint'"]),
        ("[tool]\ntritongen = 3", ["tool.tritongen must be a table"]),
    ],
)
def test_a_table_that_nothing_reads_is_said_in_pyproject_too(tmp_path, text, words):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        find_settings(tmp_path)
    said = " ".join(diagnostic.message + diagnostic.hint for diagnostic in caught.value.diagnostics)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"TG073"}
    for word in words:
        assert word in said


def test_tables_of_other_tools_are_their_own_business(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'tritongen-models'\n[tool.other]\ncheck = 1\n[tool.tritongen]\n")
    assert find_settings(tmp_path) == Settings()


@pytest.mark.parametrize("name", ["25.8", "2025.08", "25.13", "latest", "", "25.08-py3"])
def test_what_is_no_release_is_refused(name):
    with pytest.raises(InputError) as caught:
        parse_release(name)
    assert caught.value.diagnostics[0].code == "TG072"


def test_a_release_is_found_or_unknown():
    assert parse_release("24.10").triton == "2.51.0"
    assert parse_release("31.01") is None
